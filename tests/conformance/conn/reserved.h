// SPDX-License-Identifier: BSD-2-Clause
/* A reserved service point on the listener's EVD of the fixture, and requests to it. */
#ifndef TESTS_RESERVED_H
#define TESTS_RESERVED_H

#include "conn_util.h"

struct reserved {
	DAT_CONN_QUAL qual;
	DAT_RSP_HANDLE rsp;
};

static inline struct reserved reserve(struct conn_fixture *f, DAT_EP_HANDLE ep)
{
	struct reserved reserved = {.qual = dt_unused_qual()};

	dt_ok(dat_rsp_create(f->ia.ia, reserved.qual, ep, f->listener.evd, &reserved.rsp));
	assert_non_null(reserved.rsp);
	return reserved;
}

static inline DAT_CR_HANDLE request_connection(struct conn_fixture *f,
					       const struct reserved *reserved)
{
	dt_connect(&f->ia, f->a.ep, reserved->qual);
	return dt_request(&f->listener);
}

#endif
