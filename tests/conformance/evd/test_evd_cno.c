// SPDX-License-Identifier: BSD-2-Clause
/*
 * How an EVD notifies a CNO: association, enabling, and when it does not notify.
 */
#include "cno_util.h"

/* --- dat_evd_create, dat_evd_query --- */

/* EVD-CREATE-14 EVD-QUERY-06 */
static void evd_create__null_cno__none(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, DAT_HANDLE_NULL);

	assert_ptr_equal(evd_query(evd).cno_handle, DAT_HANDLE_NULL);
	evd_post(evd, 1);
	evd_take(evd, 1);
}

/* EVD-CREATE-15 EVD-CREATE-16 EVD-QUERY-06 EVD-POST-SE-11 EVD-STREAM-21 */
static void evd_create__shared_cno__each_notifies(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia), other = cno_create(&f->ia);
	DAT_EVD_HANDLE evd[3];
	DAT_EVD_PARAM param;

	for (int i = 0; i < 3; i++) {
		evd[i] = cno_evd(&f->ia, cno);
		memset(&param, 0xa5, sizeof(param));
		dt_ok(dat_evd_query(evd[i], DAT_EVD_FIELD_CNO, &param));
		assert_ptr_equal(param.cno_handle, cno);
	}
	for (int i = 0; i < 6; i++) {
		evd_post(evd[i % 3], 1);
		cno_expect(cno, evd[i % 3]);
		cno_is_quiet(cno);
		cno_is_quiet(other);
	}
}

/* EVD-CREATE-17 EVD-CREATE-18 EVD-MODIFY-CNO-14 EVD-MODIFY-CNO-15 */
static void evd__no_cno_of_the_instance__invalid_handle(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia), dead = cno_create(&f->ia), foreign;
	struct dt_ia other;

	dt_ia_open(&other);
	foreign = cno_create(&other);
	dt_ok(dat_cno_free(dead));
	dt_ok(dat_evd_modify_cno(f->evd, cno));
	const DAT_HANDLE bad[] = {
		dead, foreign, f->evd, f->ia.ia, f->ia.pz, DT_NEVER_A_HANDLE, DAT_EVD_ASYNC_EXISTS};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)&evd;

		dt_fails_with(dat_evd_create(f->ia.ia, 4, bad[i], DAT_EVD_SOFTWARE_FLAG, &evd),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
		assert_ptr_equal(evd, DAT_HANDLE_NULL);
		dt_fails_with(dat_evd_modify_cno(f->evd, bad[i]), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_CNO);
		assert_ptr_equal(evd_query(f->evd).cno_handle, cno);
		evd_post(f->evd, i);
		cno_expect(cno, f->evd);
		evd_take(f->evd, i);
	}
	dt_ok(dat_cno_free(foreign)); /* no failed call counts as a user */
	dt_ia_close(&other);
}

/* EVD-CREATE-17: a failed creation leaves no user behind */
static void evd_create__fails_with_a_cno__cno_unused(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd;

	dt_fails_with(dat_evd_create(f->ia.ia, 0, cno, DAT_EVD_SOFTWARE_FLAG, &evd),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_evd_create(f->ia.ia, 4, cno, (DAT_EVD_FLAGS)0, &evd),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	dt_fails_with(dat_evd_create(f->ia.ia, f->ia.attr.max_evd_qlen + 1, cno,
				     DAT_EVD_SOFTWARE_FLAG, &evd),
		      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	dt_ok(dat_cno_free(cno));
}

/* --- delivery --- */

/* EVD-STREAM-22 EVD-WAIT-21 EVD-ENABLE-05 EVD-ENABLE-04 EVD-DISABLE-05 */
static void evd__direct_waiter_blocked__cno_quiet_whatever_the_state(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	for (int i = 0; i < 4; i++) {
		struct evd_waiter direct = {0};

		dt_ok(i & 1 ? dat_evd_disable(evd) : dat_evd_enable(evd));
		evd_waiter_start(&direct, evd, DAT_TIMEOUT_INFINITE, 3);
		dt_ok(i & 2 ? dat_evd_disable(evd) : dat_evd_enable(evd));
		evd_post_range(evd, 1, 2);
		evd_waiter_stays(&direct);
		cno_is_quiet(cno);
		evd_post(evd, 3);
		dt_ok(evd_waiter_join(&direct));
		evd_check_soft(&direct.event, evd, 1);
		assert_int_equal(direct.nmore, 2);
		cno_stays_quiet(cno);
		evd_take_range(evd, 2, 2);
	}
	dt_ok(dat_evd_enable(evd));
	evd_post(evd, 1); /* no thread waits any more */
	cno_expect(cno, evd);
}

struct poster {
	DAT_EVD_HANDLE evd[2];
	atomic_int taken;
};

static void *post_each(void *arg)
{
	struct poster *poster = arg;

	for (int i = 0; i < 2000; i++) {
		while (atomic_load(&poster->taken) < i)
			sched_yield();
		cno_check(evd_try_post(poster->evd[i % 2], (uintptr_t)i) == DAT_SUCCESS);
	}
	return NULL;
}

/* EVD-STREAM-23: Another thread sees it right after each wake-up. */
static void cno_wait__wakes_up__event_is_queued(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	struct poster poster = {.evd = {cno_evd(&f->ia, cno), cno_evd(&f->ia, cno)}};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, post_each, &poster), 0);
	for (int i = 0; i < 2000; i++) {
		cno_expect(cno, poster.evd[i % 2]);
		evd_take(poster.evd[i % 2], (uintptr_t)i);
		atomic_store(&poster.taken, i + 1);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* EVD-DEQUEUE-08: with and without a thread that waits on the CNO */
static void evd_dequeue__evd_with_cno__success(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno), quiet = cno_evd(&f->ia, cno);
	struct cno_waiter waiter = {0};

	evd_post_range(evd, 1, 2);
	evd_take(evd, 1);
	cno_expect(cno, evd);
	dt_ok(dat_evd_disable(quiet));
	cno_waiter_start(&waiter, cno, DAT_TIMEOUT_INFINITE);
	evd_take(evd, 2);
	dt_no_event(evd);
	evd_post(quiet, 3);
	evd_take(quiet, 3);
	evd_post(evd, 4);
	cno_waiter_gets(&waiter, evd);
	evd_take(evd, 4);
}

/* --- enabling and disabling --- */

/* EVD-ENABLE-01 EVD-ENABLE-02 EVD-ENABLE-07 EVD-DISABLE-01 EVD-DISABLE-02 EVD-DISABLE-04 */
static void evd_disable__then_enable__cno_quiet_until_next_arrival(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	for (int round = 0; round < 2; round++) {
		dt_ok(dat_evd_disable(evd));
		evd_check_state(evd, DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_WAITABLE);
		evd_post_range(evd, 1, 2);
		cno_stays_quiet(cno);
		evd_take(evd, 1);
		dt_ok(dat_evd_enable(evd));
		evd_check_state(evd, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
		cno_stays_quiet(cno);
		evd_post(evd, 3);
		cno_expect(cno, evd);
		cno_is_quiet(cno);
		evd_take_range(evd, 2, 2);
		dt_no_event(evd);
	}
}

/* EVD-ENABLE-03 EVD-ENABLE-06 EVD-DISABLE-03 */
static void evd_enable__twice_or_without_cno__success(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd[2] = {cno_evd(&f->ia, cno), f->evd};

	for (int i = 0; i < 2; i++) {
		dt_ok(dat_evd_enable(evd[i]));
		dt_ok(dat_evd_disable(evd[i]));
		dt_ok(dat_evd_disable(evd[i]));
		evd_check_state(evd[i], DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_WAITABLE);
		evd_post(evd[i], 1);
		cno_is_quiet(cno);
		dt_ok(dat_evd_enable(evd[i]));
		dt_ok(dat_evd_enable(evd[i]));
		evd_check_state(evd[i], DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
		evd_post(evd[i], 2);
		if (i == 0)
			cno_expect(cno, evd[0]);
		cno_is_quiet(cno);
	}
}

/* EVD-DISABLE-06: An earlier trigger is reported at most once, and its event is queued. */
static void evd_disable__trigger_pending__at_most_once(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno), named = DAT_HANDLE_NULL;

	evd_post(evd, 1);
	dt_ok(dat_evd_disable(evd));
	if (dat_cno_wait(cno, 0, &named) == DAT_SUCCESS)
		assert_ptr_equal(named, evd);
	cno_is_quiet(cno);
	evd_take(evd, 1);
	evd_post(evd, 2);
	cno_stays_quiet(cno);
}

/* EVD-SET-UNWAITABLE-04 EVD-CLEAR-UNWAITABLE-03: enabled and disabled alike */
static void evd_set_unwaitable__and_clear__cno_not_affected(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	for (int i = 0; i < 6; i++) {
		dt_ok(i % 2 ? dat_evd_clear_unwaitable(evd) : dat_evd_set_unwaitable(evd));
		cno_is_quiet(cno);
		assert_ptr_equal(evd_query(evd).cno_handle, cno);
		evd_post(evd, 1);
		if (i / 2 == 1)
			cno_is_quiet(cno);
		else
			cno_expect(cno, evd);
		evd_take(evd, 1);
		if (i % 2)
			dt_ok(i == 1 ? dat_evd_disable(evd) : dat_evd_enable(evd));
	}
}

/* --- dat_evd_free --- */

/* EVD-FREE-09 */
static void evd_free__with_cno__one_user_less(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd[2] = {cno_evd(&f->ia, cno), cno_evd(&f->ia, cno)};

	for (int i = 0; i < 2; i++) {
		dt_fails_with(dat_cno_free(cno), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
		evd_post(evd[i], 1);
		dt_ok(dat_evd_free(evd[i]));
	}
	dt_ok(dat_cno_free(cno));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(evd_create__null_cno__none),
		evd_test(evd_create__shared_cno__each_notifies),
		evd_test(evd__no_cno_of_the_instance__invalid_handle),
		evd_test(evd_create__fails_with_a_cno__cno_unused),
		evd_test(evd__direct_waiter_blocked__cno_quiet_whatever_the_state),
		evd_test(cno_wait__wakes_up__event_is_queued),
		evd_test(evd_dequeue__evd_with_cno__success),
		evd_test(evd_disable__then_enable__cno_quiet_until_next_arrival),
		evd_test(evd_enable__twice_or_without_cno__success),
		evd_test(evd_disable__trigger_pending__at_most_once),
		evd_test(evd_set_unwaitable__and_clear__cno_not_affected),
		evd_test(evd_free__with_cno__one_user_less),
	};

	return cmocka_run_group_tests_name("evd_cno", tests, NULL, NULL);
}
