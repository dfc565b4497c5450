// SPDX-License-Identifier: BSD-2-Clause
/* dat_psp_create and dat_psp_create_any with one signature, for tests that run for both. */
#ifndef TESTS_PSP_CREATORS_H
#define TESTS_PSP_CREATORS_H

#include "conn_util.h"

typedef DAT_RETURN (*create_fn)(struct conn_fixture *f, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
				DAT_CONN_QUAL *qual_out, DAT_PSP_HANDLE *psp_out);

static inline DAT_RETURN create_given(struct conn_fixture *f, DAT_EVD_HANDLE evd,
				      DAT_PSP_FLAGS flags, DAT_CONN_QUAL *qual_out,
				      DAT_PSP_HANDLE *psp_out)
{
	*qual_out = dt_unused_qual();
	return dat_psp_create(f->ia.ia, *qual_out, evd, flags, psp_out);
}

static inline DAT_RETURN create_any(struct conn_fixture *f, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
				    DAT_CONN_QUAL *qual_out, DAT_PSP_HANDLE *psp_out)
{
	return dat_psp_create_any(f->ia.ia, qual_out, evd, flags, psp_out);
}

static const create_fn creators[] = {create_given, create_any};

#endif
