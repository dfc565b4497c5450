// SPDX-License-Identifier: BSD-2-Clause
/* dat_opendat_ep_attr_default (dat/opendat.h), an extension. */
#include "ep_util.h"

#include <dat/opendat.h>

/* The values are those that an endpoint gets without attributes, and dat_ep_create takes them. */
static void ep_attr_default__of_an_instance__those_of_an_endpoint(void **state)
{
	struct dt_ia *ia = *state;
	DAT_EP_PARAM made, given;
	struct dt_ep ep, other;
	DAT_EP_ATTR attr;

	memset(&attr, 0xEE, sizeof(attr));
	dt_ok(dat_opendat_ep_attr_default(ia->ia, &attr));
	dt_ep_create(ia, ia->pz, NULL, &ep);
	dt_ep_create(ia, ia->pz, &attr, &other);
	dt_ok(dat_ep_query(ep.ep, DAT_EP_FIELD_ALL, &made));
	dt_ok(dat_ep_query(other.ep, DAT_EP_FIELD_ALL, &given));
	assert_memory_equal(&made.ep_attr, &attr, sizeof(attr));
	assert_memory_equal(&given.ep_attr, &attr, sizeof(attr));
	dt_ep_free(&other);
	dt_ep_free(&ep);
}

static void ep_attr_default__bad_arguments__refused(void **state)
{
	struct dt_ia *ia = *state;
	DAT_EP_ATTR attr;

	dt_fails_with(dat_opendat_ep_attr_default(DT_NEVER_A_HANDLE, &attr), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_opendat_ep_attr_default(DAT_HANDLE_NULL, &attr), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_opendat_ep_attr_default(ia->ia, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_ia_test(ep_attr_default__of_an_instance__those_of_an_endpoint),
		dt_ia_test(ep_attr_default__bad_arguments__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
