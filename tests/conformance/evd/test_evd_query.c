// SPDX-License-Identifier: BSD-2-Clause
/* dat_evd_query, enable, disable, set_unwaitable, clear_unwaitable, modify_cno without a CNO. */
#include "evd_util.h"

/* EVD-QUERY-01 EVD-QUERY-02 EVD-QUERY-06 EVD-QUERY-07 EVD-QUERY-08: each field by itself */
static void evd_query__one_field_at_a_time__its_value(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_PARAM param;

	assert_int_equal(DAT_EVD_FIELD_ALL, 0x1f);
	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_evd_query(f->evd, DAT_EVD_FIELD_IA_HANDLE, &param));
	assert_ptr_equal(param.ia_handle, f->ia.ia);
	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_evd_query(f->evd, DAT_EVD_FIELD_EVD_QLEN, &param));
	assert_int_equal(param.evd_qlen, EVD_QLEN);
	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_evd_query(f->evd, DAT_EVD_FIELD_EVD_STATE, &param));
	assert_int_equal(param.evd_state & 0x0f, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_evd_query(f->evd, DAT_EVD_FIELD_CNO, &param));
	assert_ptr_equal(param.cno_handle, DAT_HANDLE_NULL);
	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_evd_query(f->evd, DAT_EVD_FIELD_EVD_FLAGS, &param));
	assert_int_equal(param.evd_flags, DAT_EVD_SOFTWARE_FLAG);
	dt_ok(dat_evd_query(f->evd, (DAT_EVD_PARAM_MASK)0, &param));
}

/* EVD-QUERY-07 EVD-QUERY-06 EVD-QUERY-01 */
static void evd_query__asynchronous_evd__async_flag_and_no_cno(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_PARAM param = evd_query(f->ia.async);

	assert_true(param.evd_flags & DAT_EVD_ASYNC_FLAG);
	assert_ptr_equal(param.cno_handle, DAT_HANDLE_NULL);
	assert_ptr_equal(param.ia_handle, f->ia.ia);
	assert_true(param.evd_qlen >= 1);
}

/* EVD-QUERY-08 */
static void evd_query__undefined_mask_bit__invalid_parameter(void **state)
{
	static const unsigned int bad[] = {0x20, 0x3f, 0x10001, 0x80000000};
	struct evd_fixture *f = *state;
	DAT_EVD_PARAM param;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		dt_fails_with(dat_evd_query(f->evd, (DAT_EVD_PARAM_MASK)bad[i], &param),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

/* EVD-QUERY-09 */
static void evd_query__null_output__invalid_parameter(void **state)
{
	struct evd_fixture *f = *state;

	dt_fails_with(dat_evd_query(f->evd, DAT_EVD_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
}

/* EVD-QUERY-10 EVD-ENABLE-08 EVD-DISABLE-07 EVD-SET-UNWAITABLE-09 EVD-CLEAR-UNWAITABLE-06
 * EVD-RESIZE-14 EVD-FREE-13 EVD-FREE-11 EVD-MODIFY-CNO-13 */
static void evd_calls__bad_handle__invalid_handle(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE freed = dt_evd_create(&f->ia, 4, DAT_EVD_SOFTWARE_FLAG);
	const DAT_HANDLE bad[] = {DAT_HANDLE_NULL, f->ia.pz, f->ia.ia, DT_NEVER_A_HANDLE, freed};
	DAT_EVD_PARAM param;

	dt_ok(dat_evd_free(freed));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		dt_fails(dat_evd_query(bad[i], DAT_EVD_FIELD_ALL, &param), DAT_INVALID_HANDLE);
		dt_fails(dat_evd_enable(bad[i]), DAT_INVALID_HANDLE);
		dt_fails(dat_evd_disable(bad[i]), DAT_INVALID_HANDLE);
		dt_fails(dat_evd_set_unwaitable(bad[i]), DAT_INVALID_HANDLE);
		dt_fails(dat_evd_clear_unwaitable(bad[i]), DAT_INVALID_HANDLE);
		dt_fails(dat_evd_resize(bad[i], 4), DAT_INVALID_HANDLE);
		dt_fails(dat_evd_modify_cno(bad[i], DAT_HANDLE_NULL), DAT_INVALID_HANDLE);
		dt_fails(dat_evd_free(bad[i]), DAT_INVALID_HANDLE);
	}
	/* none of these was mistaken for another object */
	evd_check_state(f->evd, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
}

/* EVD-QUERY-11 */
static void evd_query__waiter_blocked__works(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};
	DAT_EVD_PARAM param;

	evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 1);
	param = evd_query(f->evd);
	assert_int_equal(param.evd_qlen, EVD_QLEN);
	assert_int_equal(param.evd_state & 0x0f, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
	evd_waiter_stays(&waiter);
	evd_post(f->evd, 1);
	dt_ok(evd_waiter_join(&waiter));
}

/*
 * EVD-QUERY-03 EVD-QUERY-04 EVD-ENABLE-02 EVD-ENABLE-03 EVD-ENABLE-06 EVD-DISABLE-02
 * EVD-DISABLE-03 EVD-SET-UNWAITABLE-03 EVD-SET-UNWAITABLE-07 EVD-CLEAR-UNWAITABLE-02
 * EVD-CLEAR-UNWAITABLE-05 EVD-CLEAR-UNWAITABLE-03: all four states, with each call made twice.
 */
static void evd_state__every_change_twice__only_its_own_half(void **state)
{
	struct evd_fixture *f = *state;

	for (int i = 0; i < 2; i++) {
		dt_ok(dat_evd_enable(f->evd));
		dt_ok(dat_evd_clear_unwaitable(f->evd));
		evd_check_state(f->evd, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
	}
	for (int i = 0; i < 2; i++) {
		dt_ok(dat_evd_disable(f->evd));
		evd_check_state(f->evd, DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_WAITABLE);
	}
	for (int i = 0; i < 2; i++) {
		dt_ok(dat_evd_set_unwaitable(f->evd));
		evd_check_state(f->evd, DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_UNWAITABLE);
	}
	for (int i = 0; i < 2; i++) {
		dt_ok(dat_evd_enable(f->evd));
		evd_check_state(f->evd, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_UNWAITABLE);
	}
	for (int i = 0; i < 2; i++) {
		dt_ok(dat_evd_clear_unwaitable(f->evd));
		evd_check_state(f->evd, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
	}
}

/* EVD-CLEAR-UNWAITABLE-01 EVD-CLEAR-UNWAITABLE-04 EVD-SET-UNWAITABLE-05 */
static void evd_clear_unwaitable__events_queued_meanwhile__next_wait_returns_them(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};
	DAT_EVENT event;
	DAT_COUNT nmore;

	dt_ok(dat_evd_set_unwaitable(f->evd));
	evd_post_range(f->evd, 1, 2);
	dt_ok(dat_evd_clear_unwaitable(f->evd));
	dt_ok(dat_evd_wait(f->evd, 0, 2, &event, &nmore));
	evd_check_soft(&event, f->evd, 1);
	assert_int_equal(nmore, 1);
	evd_take(f->evd, 2);
	evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 1);
	evd_post(f->evd, 3);
	dt_ok(evd_waiter_join(&waiter));
	evd_check_soft(&waiter.event, f->evd, 3);
}

/* EVD-SET-UNWAITABLE-06: an unwaitable EVD overflows like any other */
static void evd_set_unwaitable__events_keep_coming__overflow(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE recv = dt_evd_create(&f->ia, 1, DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE conn = dt_evd_create(&f->ia, 8, DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE ep = evd_flusher(&f->ia, recv, conn, NULL);
	DAT_EVENT event;

	dt_ok(dat_evd_set_unwaitable(recv));
	evd_flush(ep, 1);
	evd_flush(ep, 2);
	event = dt_event(f->ia.async);
	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, recv);
	dt_expect_dto(recv, ep, 1, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
}

struct toggler {
	DAT_EVD_HANDLE evd;
	DAT_RETURN (*on)(DAT_EVD_HANDLE evd);
	DAT_RETURN (*off)(DAT_EVD_HANDLE evd);
	atomic_bool stop;
	DAT_RETURN ret;
};

static void *toggle(void *arg)
{
	struct toggler *toggler = arg;

	while (!atomic_load(&toggler->stop) && toggler->ret == DAT_SUCCESS) {
		toggler->ret = toggler->off(toggler->evd);
		if (toggler->ret == DAT_SUCCESS)
			toggler->ret = toggler->on(toggler->evd);
	}
	return NULL;
}

/* Events arrive in order while other threads change the state of the EVD. */
static void flow_while_toggling(struct evd_fixture *f, DAT_RETURN (*off)(DAT_EVD_HANDLE evd),
				DAT_RETURN (*on)(DAT_EVD_HANDLE evd))
{
	struct toggler togglers[2];
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		togglers[i] = (struct toggler){.evd = f->evd, .on = on, .off = off};
		assert_int_equal(pthread_create(&threads[i], NULL, toggle, &togglers[i]), 0);
	}
	for (uintptr_t i = 0; i < 3000; i++) {
		evd_post(f->evd, i);
		evd_take(f->evd, i);
	}
	for (int i = 0; i < 2; i++)
		atomic_store(&togglers[i].stop, true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		dt_ok(togglers[i].ret);
	}
	evd_check_state(f->evd, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
}

/* EVD-ENABLE-09 EVD-DISABLE-08 EVD-DISABLE-04 */
static void evd_enable__parallel_with_disable__events_flow(void **state)
{
	flow_while_toggling(*state, dat_evd_disable, dat_evd_enable);
}

/* EVD-SET-UNWAITABLE-10 EVD-CLEAR-UNWAITABLE-07 EVD-SET-UNWAITABLE-05 */
static void evd_set_unwaitable__parallel_with_clear__events_flow(void **state)
{
	flow_while_toggling(*state, dat_evd_set_unwaitable, dat_evd_clear_unwaitable);
}

/* EVD-MODIFY-CNO-04: There was no CNO, and there is none now. */
static void evd_modify_cno__null__no_cno(void **state)
{
	struct evd_fixture *f = *state;

	dt_ok(dat_evd_modify_cno(f->evd, DAT_HANDLE_NULL));
	assert_ptr_equal(evd_query(f->evd).cno_handle, DAT_HANDLE_NULL);
	dt_ok(dat_evd_modify_cno(f->ia.async, DAT_HANDLE_NULL));
}

/* EVD-MODIFY-CNO-14 */
static void evd_modify_cno__bad_cno__invalid_handle(void **state)
{
	struct evd_fixture *f = *state;
	const DAT_HANDLE bad[] = {f->evd, f->ia.pz, f->ia.ia, DT_NEVER_A_HANDLE, (DAT_HANDLE)2};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		dt_fails_with(dat_evd_modify_cno(f->evd, bad[i]), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_CNO);
	assert_ptr_equal(evd_query(f->evd).cno_handle, DAT_HANDLE_NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(evd_query__one_field_at_a_time__its_value),
		evd_test(evd_query__asynchronous_evd__async_flag_and_no_cno),
		evd_test(evd_query__undefined_mask_bit__invalid_parameter),
		evd_test(evd_query__null_output__invalid_parameter),
		evd_test(evd_calls__bad_handle__invalid_handle),
		evd_test(evd_query__waiter_blocked__works),
		evd_test(evd_state__every_change_twice__only_its_own_half),
		evd_test(evd_clear_unwaitable__events_queued_meanwhile__next_wait_returns_them),
		evd_test(evd_set_unwaitable__events_keep_coming__overflow),
		evd_test(evd_enable__parallel_with_disable__events_flow),
		evd_test(evd_set_unwaitable__parallel_with_clear__events_flow),
		evd_test(evd_modify_cno__null__no_cno),
		evd_test(evd_modify_cno__bad_cno__invalid_handle),
	};

	return cmocka_run_group_tests_name("evd_query", tests, NULL, NULL);
}
