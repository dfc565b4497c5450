// SPDX-License-Identifier: BSD-2-Clause
/* Why a connection was refused, and what to do about it. */
#ifndef TOOLS_REFUSED_H
#define TOOLS_REFUSED_H

#include <dat/udat.h>

/* Prints why the attempt to connect ended with this event. */
void refused_event(const struct sockaddr *address, DAT_CONN_QUAL qualifier,
		   DAT_EVENT_NUMBER number);
/* Prints that no event came. */
void refused_silence(const struct sockaddr *address, DAT_CONN_QUAL qualifier, unsigned timeout_ms);
/* Prints why a call that makes a connection has failed. Returns -EIO. */
int refused_call(const char *call, DAT_RETURN code);
/* A service point cannot be made on that qualifier. Returns -EIO. */
int refused_listen(const char *call, DAT_RETURN code, DAT_CONN_QUAL qualifier);

#endif
