// SPDX-License-Identifier: BSD-2-Clause
/* dat_psp_create and dat_psp_create_any: refusals, which create nothing and keep no reference. */
#include "psp_creators.h"

/* PSP-CREATE-14 PSP-CREATE-20 PSP-CRANY-07 PSP-CRANY-08 PSP-CRANY-09 */
static void psp_create__bad_parameter__invalid_parameter(void **state)
{
	static const int bad_flags[] = {0x02, 0x03, 0x100, -1};
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL free_qual = dt_unused_qual();
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;

	for (size_t i = 0; i < COUNT_OF(bad_flags); i++)
		for (size_t way = 0; way < COUNT_OF(creators); way++)
			dt_fails_with(creators[way](f, f->listener.evd, (DAT_PSP_FLAGS)bad_flags[i],
						    &qual, &psp),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	dt_fails_with(
		dat_psp_create(f->ia.ia, free_qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, NULL),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	dt_fails_with(
		dat_psp_create_any(f->ia.ia, NULL, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(
		dat_psp_create_any(f->ia.ia, &qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, NULL),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	/* nobody listens there */
	dt_ok(dat_psp_create(f->ia.ia, free_qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
}

struct creator_call {
	struct conn_fixture *f;
	create_fn create;
};

static DAT_RETURN create_with_evd(DAT_HANDLE handle, void *arg)
{
	struct creator_call *call = arg;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;

	return call->create(call->f, handle, DAT_PSP_CONSUMER_FLAG, &qual, &psp);
}

static DAT_RETURN create_with_ia(DAT_HANDLE handle, void *arg)
{
	struct creator_call *call = arg;
	DAT_CONN_QUAL qual = 5;
	DAT_PSP_HANDLE psp;

	if (call->create == create_any)
		return dat_psp_create_any(handle, &qual, call->f->listener.evd,
					  DAT_PSP_CONSUMER_FLAG, &psp);
	return dat_psp_create(handle, qual, call->f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp);
}

/* PSP-CREATE-17 PSP-CREATE-18 PSP-CREATE-19 PSP-CRANY-11 PSP-CRANY-12 GEN-17 */
static void psp_create__bad_handle__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EVD_HANDLE wrong_kind =
		dt_evd_create(&f->ia, 4,
			      DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG |
				      DAT_EVD_RMR_BIND_FLAG | DAT_EVD_ASYNC_FLAG);
	const DAT_EVD_HANDLE freed = conn_freed_evd(&f->ia);
	struct dt_ia other;
	DAT_EVD_HANDLE foreign;
	DAT_IA_HANDLE closed;

	dt_ia_open(&other);
	closed = other.ia;
	dt_ia_close(&other);
	dt_ia_open(&other);
	foreign = dt_evd_create(&other, 4, DAT_EVD_CR_FLAG);
	for (size_t way = 0; way < COUNT_OF(creators); way++) {
		struct creator_call call = {.f = f, .create = creators[way]};

		conn_refuses_handles(create_with_evd, &call, f->a.ep, freed,
				     DAT_INVALID_HANDLE_EVD_CR);
		dt_fails_with(create_with_evd(wrong_kind, &call), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EVD_CR);
		dt_fails_with(create_with_evd(foreign, &call), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EVD_CR);
		conn_refuses_handles(create_with_ia, &call, f->a.ep, closed, DAT_INVALID_HANDLE_IA);
	}
	dt_ok(dat_evd_free(wrong_kind)); /* the refused calls keep no reference */
	dt_ia_abort(&other);
}

/* PSP-CREATE-21 PSP-CRANY-13 */
static void psp_create__no_descriptors__insufficient_resources(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 4, DAT_EVD_CR_FLAG);
	const DAT_CONN_QUAL qual = dt_unused_qual();
	struct rlimit limit = conn_descriptors_take();
	DAT_CONN_QUAL any;
	DAT_PSP_HANDLE psp;
	const DAT_RETURN given = dat_psp_create(f->ia.ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &psp);
	const DAT_RETURN chosen =
		dat_psp_create_any(f->ia.ia, &any, evd, DAT_PSP_CONSUMER_FLAG, &psp);

	conn_descriptors_give(&limit);
	dt_fails_with(given, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	dt_fails_with(chosen, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	dt_ok(dat_evd_free(evd)); /* no reference is left */
	dt_ok(dat_psp_create(f->ia.ia, qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(psp_create__bad_parameter__invalid_parameter),
		conn_test(psp_create__bad_handle__invalid_handle),
		conn_test(psp_create__no_descriptors__insufficient_resources),
	};

	return cmocka_run_group_tests_name("psp_refused", tests, NULL, NULL);
}
