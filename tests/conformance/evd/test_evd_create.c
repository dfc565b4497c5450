// SPDX-License-Identifier: BSD-2-Clause
/* dat_evd_create: queue length, flags, refusals, and the state of a new EVD. */
#include "evd_util.h"

static const DAT_EVD_FLAGS one_flag[] = {
	DAT_EVD_SOFTWARE_FLAG,	 DAT_EVD_CR_FLAG,	DAT_EVD_DTO_FLAG,
	DAT_EVD_CONNECTION_FLAG, DAT_EVD_RMR_BIND_FLAG, DAT_EVD_ASYNC_FLAG,
};

#define FLAG_COUNT (sizeof(one_flag) / sizeof(one_flag[0]))

/* EVD-CREATE-02 EVD-CREATE-03 */
static void evd_flags__values__those_of_the_header(void **state)
{
	(void)state;
	assert_int_equal(DAT_EVD_SOFTWARE_FLAG, 0x001);
	assert_int_equal(DAT_EVD_CR_FLAG, 0x010);
	assert_int_equal(DAT_EVD_DTO_FLAG, 0x020);
	assert_int_equal(DAT_EVD_CONNECTION_FLAG, 0x040);
	assert_int_equal(DAT_EVD_RMR_BIND_FLAG, 0x080);
	assert_int_equal(DAT_EVD_ASYNC_FLAG, 0x100);
	assert_int_equal(DAT_EVD_DEFAULT_FLAG, 0x1f0);
}

/* EVD-CREATE-01 EVD-CREATE-14 EVD-CREATE-22 EVD-CREATE-23 */
static void evd_create__no_cno__empty_enabled_waitable(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_EVENT event;

	dt_ok(dat_evd_create(f->ia.ia, 5, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
	assert_non_null(evd);
	dt_fails(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
	evd_check_state(evd, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
	assert_ptr_equal(evd_query(evd).cno_handle, DAT_HANDLE_NULL);
	/* no event stream feeds it */
	dt_ok(dat_evd_free(evd));
}

/* EVD-CREATE-04 EVD-CREATE-08 EVD-CREATE-03 EVD-QUERY-07 */
static void evd_create__every_combination_of_flags__accepted(void **state)
{
	struct evd_fixture *f = *state;

	for (unsigned int bits = 1; bits < 1u << FLAG_COUNT; bits++) {
		unsigned int flags = 0;
		DAT_EVD_HANDLE evd;

		for (unsigned int i = 0; i < FLAG_COUNT; i++) {
			if (bits & 1u << i)
				flags |= (unsigned int)one_flag[i];
		}
		evd = dt_evd_create(&f->ia, 4, (DAT_EVD_FLAGS)flags);
		assert_int_equal(evd_query(evd).evd_flags, flags);
		dt_ok(dat_evd_free(evd));
	}
}

/* EVD-CREATE-06 EVD-CREATE-07 EVD-CREATE-21 */
static void evd_create__no_or_undefined_flag__invalid_parameter(void **state)
{
	static const unsigned int bad[] = {
		0x000, 0x002, 0x008, 0x200, 0x1f2, 0x22, 0x10000020, 0x80000001,
	};
	struct evd_fixture *f = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		DAT_EVD_HANDLE evd = f->evd;

		dt_fails_with(
			dat_evd_create(f->ia.ia, 4, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)bad[i], &evd),
			DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
		assert_ptr_equal(evd, DAT_HANDLE_NULL);
	}
}

/* EVD-CREATE-09 EVD-CREATE-10 EVD-QUERY-02 */
static void evd_create__lengths__exactly_as_asked(void **state)
{
	static const DAT_COUNT lengths[] = {1, 2, 3, 7, 8, 100};
	struct evd_fixture *f = *state;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, lengths[i], DAT_EVD_SOFTWARE_FLAG);

		assert_int_equal(evd_query(evd).evd_qlen, lengths[i]);
		evd_post_range(evd, 1, (uintptr_t)lengths[i]);
		dt_fails(evd_try_post(evd, 0), DAT_QUEUE_FULL);
		evd_take_range(evd, 1, (uintptr_t)lengths[i]);
		dt_ok(dat_evd_free(evd));
	}
}

/* EVD-CREATE-11 EVD-CREATE-21 */
static void evd_create__length_not_positive__invalid_parameter(void **state)
{
	static const DAT_COUNT bad[] = {0, -1, INT32_MIN};
	struct evd_fixture *f = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		DAT_EVD_HANDLE evd = f->evd;

		dt_fails_with(
			dat_evd_create(f->ia.ia, bad[i], DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd),
			DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		assert_ptr_equal(evd, DAT_HANDLE_NULL);
	}
}

/* EVD-CREATE-12 */
static void evd_create__length_at_the_limit__accepted(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, f->ia.attr.max_evd_qlen, DAT_EVD_DTO_FLAG);

	assert_int_equal(evd_query(evd).evd_qlen, f->ia.attr.max_evd_qlen);
	dt_ok(dat_evd_free(evd));
}

/* EVD-CREATE-19 */
static void evd_create__bad_ia__invalid_handle(void **state)
{
	struct evd_fixture *f = *state;
	DAT_IA_HANDLE closed = f->ia.ia;
	DAT_EVD_HANDLE evd;

	dt_fails_with(dat_evd_create(DAT_HANDLE_NULL, 4, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_evd_create(f->evd, 4, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_evd_create(f->ia.pz, 4, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	dt_ia_abort(&f->ia);
	f->is_open = false;
	dt_fails_with(dat_evd_create(closed, 4, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
}

/* EVD-CREATE-20 */
static void evd_create__null_output__invalid_parameter(void **state)
{
	struct evd_fixture *f = *state;

	dt_fails_with(dat_evd_create(f->ia.ia, 4, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
}

static void refused_by_ep_create(struct evd_fixture *f, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
				 DAT_EVD_HANDLE conn, DAT_RETURN_SUBTYPE subtype)
{
	DAT_EP_HANDLE ep;

	dt_fails_with(dat_ep_create(f->ia.ia, f->ia.pz, recv, request, conn, NULL, &ep),
		      DAT_INVALID_HANDLE, subtype);
}

/* EVD-CREATE-05: Only the flag that a stream needs is missing. */
static void evd_create__flag_missing__stream_refused(void **state)
{
	struct evd_fixture *f = *state;
	unsigned int all = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG;
	DAT_EVD_HANDLE no_dto = dt_evd_create(&f->ia, 32, all & ~(unsigned int)DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE no_conn =
		dt_evd_create(&f->ia, 32, all & ~(unsigned int)DAT_EVD_CONNECTION_FLAG);
	DAT_EVD_HANDLE no_cr = dt_evd_create(&f->ia, 32, all & ~(unsigned int)DAT_EVD_CR_FLAG);
	DAT_EVD_HANDLE good = dt_evd_create(&f->ia, 32, all);
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_EP_HANDLE ep;

	refused_by_ep_create(f, no_dto, good, good, DAT_INVALID_HANDLE_EVD_RECV);
	refused_by_ep_create(f, good, no_dto, good, DAT_INVALID_HANDLE_EVD_REQUEST);
	refused_by_ep_create(f, good, good, no_conn, DAT_INVALID_HANDLE_EVD_CONN);
	dt_fails_with(dat_psp_create_any(f->ia.ia, &qual, no_cr, DAT_PSP_CONSUMER_FLAG, &psp),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, good, good, good, NULL, &ep));
	dt_ok(dat_psp_create_any(f->ia.ia, &qual, good, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_ok(dat_psp_free(psp));
	dt_fails_with(dat_rsp_create(f->ia.ia, qual, ep, no_cr, &rsp), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EVD_CR);
	/* the refused calls left no reference */
	dt_ok(dat_evd_free(no_dto));
	dt_ok(dat_evd_free(no_conn));
	dt_ok(dat_evd_free(no_cr));
}

/* EVD-CREATE-25 EVD-STREAM-30: An overflow is reported to the instance's own asynchronous EVD
 * only. */
static void evd_create__async_flag__no_async_events_by_itself(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE other = dt_evd_create(&f->ia, 8, DAT_EVD_ASYNC_FLAG);
	DAT_EVD_HANDLE recv = dt_evd_create(&f->ia, 1, DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE conn = dt_evd_create(&f->ia, 8, DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE ep = evd_flusher(&f->ia, recv, conn, NULL);

	evd_flush(ep, 1);
	evd_flush(ep, 2);
	assert_int_equal(dt_event(f->ia.async).event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	dt_no_event(other);
}

#define THREADS 4
#define ROUNDS 200

static void *create_and_free(void *arg)
{
	struct evd_fixture *f = arg;

	for (int i = 0; i < ROUNDS; i++) {
		DAT_EVD_HANDLE evd;
		DAT_EVENT event;

		if (dat_evd_create(f->ia.ia, 3, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd) ||
		    evd_try_post(evd, 7) || dat_evd_dequeue(evd, &event) || dat_evd_free(evd))
			return f;
	}
	return NULL;
}

/* EVD-CREATE-26 */
static void evd_create__several_threads__all_succeed(void **state)
{
	struct evd_fixture *f = *state;
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, create_and_free, f), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evd_flags__values__those_of_the_header),
		evd_test(evd_create__no_cno__empty_enabled_waitable),
		evd_test(evd_create__every_combination_of_flags__accepted),
		evd_test(evd_create__no_or_undefined_flag__invalid_parameter),
		evd_test(evd_create__lengths__exactly_as_asked),
		evd_test(evd_create__length_not_positive__invalid_parameter),
		evd_test(evd_create__length_at_the_limit__accepted),
		evd_test(evd_create__bad_ia__invalid_handle),
		evd_test(evd_create__null_output__invalid_parameter),
		evd_test(evd_create__flag_missing__stream_refused),
		evd_test(evd_create__async_flag__no_async_events_by_itself),
		evd_test(evd_create__several_threads__all_succeed),
	};

	return cmocka_run_group_tests_name("evd_create", tests, NULL, NULL);
}
