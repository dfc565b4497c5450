// SPDX-License-Identifier: BSD-2-Clause
/* Endpoints. */
#ifndef CHECK_EP_H
#define CHECK_EP_H

#include <dat/udat.h>

struct check_object;

/* The object of an endpoint; NULL: memory is exhausted. */
struct check_object *check_ep_make(const char *maker, struct check_object *ia, DAT_EP_HANDLE inner);
/* The endpoint is gone, with its requests. */
void check_ep_kill(struct check_object *ep);

#endif
