// SPDX-License-Identifier: BSD-2-Clause
/* The places of a qualifier (place.c). EP locked; service thread but for iw_place_first. */
#ifndef IWARP_PLACE_H
#define IWARP_PLACE_H

#include "soft/iwarp/connect/setup.h"

/* Opens the first place. 0, or -errno: no attempt is made (shortage). */
int iw_place_first(struct iw_conn *conn, struct core_ep *ep);
/* The current place has failed with that error of TCP, or does not serve the qualifier (0). */
void iw_place_failed(struct iw_conn *conn, struct core_ep *ep, int error);
/* Makes another request to the current place, on a new socket and with revision 1. */
void iw_place_again(struct iw_conn *conn, struct core_ep *ep);
/* Has the current place connected? 1: yes; 0: not yet; or -errno. */
int iw_place_connected(const struct iw_conn *conn);
/* Looks at the time and at the other sockets; goes on with another place if that is due. */
void iw_place_due(struct iw_conn *conn, struct core_ep *ep, uint64_t now_ns);

static inline struct iw_place *iw_place_of(struct iw_setup *setup)
{
	return &setup->active.places[setup->active.index];
}

#endif
