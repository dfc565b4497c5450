// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_evd_modify_cno: which CNO the events before, during and after the call notify.
 */
#include "cno_util.h"

/* EVD-MODIFY-CNO-01 EVD-MODIFY-CNO-02 EVD-MODIFY-CNO-07 EVD-MODIFY-CNO-08 */
static void evd_modify_cno__another__it_alone_is_notified(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno[2] = {cno_create(&f->ia), cno_create(&f->ia)};
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno[0]);

	for (int i = 0; i < 5; i++) {
		DAT_CNO_HANDLE old = cno[i % 2], new = cno[1 - i % 2];

		evd_post(evd, 1);
		cno_expect(old, evd);
		dt_ok(dat_evd_modify_cno(evd, new));
		assert_ptr_equal(evd_query(evd).cno_handle, new);
		evd_post(evd, 2);
		cno_is_quiet(old);
		cno_expect(new, evd);
		cno_is_quiet(new);
		dt_fails_with(dat_cno_free(new), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
		dt_ok(dat_cno_free(old));
		cno[i % 2] = cno_create(&f->ia);
	}
}

/* EVD-MODIFY-CNO-04 EVD-MODIFY-CNO-07 */
static void evd_modify_cno__null__nothing_is_notified(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	dt_ok(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	assert_ptr_equal(evd_query(evd).cno_handle, DAT_HANDLE_NULL);
	evd_post(evd, 1);
	cno_stays_quiet(cno);
	evd_take(evd, 1);
	dt_ok(dat_cno_free(cno));
	dt_ok(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	evd_post(evd, 2);
	evd_take(evd, 2);
}

struct mover {
	DAT_EVD_HANDLE evd;
	atomic_int round;  /* what to post next */
	atomic_int posted; /* what was posted */
};

static void *post_on_demand(void *arg)
{
	struct mover *mover = arg;

	for (int i = 1; i <= 2000; i++) {
		while (atomic_load(&mover->round) < i)
			sched_yield();
		cno_check(evd_try_post(mover->evd, (uintptr_t)i) == DAT_SUCCESS);
		atomic_store(&mover->posted, i);
	}
	return NULL;
}

/* EVD-MODIFY-CNO-03 EVD-MODIFY-CNO-05 EVD-MODIFY-CNO-16: The event arrives during the call. */
static void evd_modify_cno__event_meanwhile__old_or_new_is_notified(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno[2] = {cno_create(&f->ia), cno_create(&f->ia)};
	struct mover mover = {.evd = cno_evd(&f->ia, cno[0])};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, post_on_demand, &mover), 0);
	for (int i = 1; i <= 2000; i++) {
		DAT_EVD_HANDLE named = DAT_HANDLE_NULL;
		DAT_RETURN ret;

		atomic_store(&mover.round, i);
		for (int j = 0; j < i % 7; j++)
			sched_yield();
		dt_ok(dat_evd_modify_cno(mover.evd, cno[i % 2]));
		while (atomic_load(&mover.posted) < i)
			sched_yield();
		ret = dat_cno_wait(cno[i % 2], 0, &named);
		if (ret == DAT_QUEUE_EMPTY)
			ret = dat_cno_wait(cno[1 - i % 2], 0, &named);
		dt_ok(ret);
		assert_ptr_equal(named, mover.evd);
		cno_is_quiet(cno[0]);
		cno_is_quiet(cno[1]);
		evd_take(mover.evd, (uintptr_t)i);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* EVD-MODIFY-CNO-05 CNO-WAIT-27: What remains with the old CNO is reported once, or not at all
 * after a free. */
static void evd_modify_cno__trigger_pending__stays_until_named_or_freed(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE old = cno_create(&f->ia), new = cno_create(&f->ia);

	for (int i = 0; i < 4; i++) {
		DAT_EVD_HANDLE evd = cno_evd(&f->ia, old), named = DAT_HANDLE_NULL;

		evd_post(evd, 1);
		dt_ok(dat_evd_modify_cno(evd, new));
		cno_is_quiet(new);
		if (i & 1) { /* there and back again: still one trigger */
			dt_ok(dat_evd_modify_cno(evd, old));
			evd_post(evd, 2);
		}
		if (i & 2) {
			dt_ok(dat_evd_free(evd));
		} else {
			if (dat_cno_wait(old, 0, &named) == DAT_SUCCESS)
				assert_ptr_equal(named, evd);
			evd_take(evd, 1);
		}
		cno_is_quiet(old);
		cno_is_quiet(new);
		if (!(i & 2))
			dt_ok(dat_evd_free(evd));
	}
	dt_ok(dat_cno_free(old));
	dt_ok(dat_cno_free(new));
}

/* EVD-MODIFY-CNO-06 */
static void evd_modify_cno__disabled_around__only_the_new_is_notified(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE old = cno_create(&f->ia), new = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, old);

	dt_ok(dat_evd_disable(evd));
	evd_post(evd, 1);
	dt_ok(dat_evd_modify_cno(evd, new));
	evd_check_state(evd, DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_WAITABLE);
	evd_post(evd, 2);
	cno_is_quiet(old);
	cno_is_quiet(new);
	dt_ok(dat_evd_enable(evd));
	evd_post(evd, 3);
	cno_is_quiet(old);
	cno_expect(new, evd);
	cno_is_quiet(new);
}

/* EVD-MODIFY-CNO-09: Still one user, and a pending trigger stays. */
static void evd_modify_cno__the_same__nothing_changes(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	for (int i = 0; i < 3; i++) {
		dt_ok(dat_evd_modify_cno(evd, cno));
		dt_fails_with(dat_cno_free(cno), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
	}
	evd_post(evd, 1);
	dt_ok(dat_evd_modify_cno(evd, cno));
	cno_expect(cno, evd);
	cno_is_quiet(cno);
	dt_ok(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	dt_ok(dat_cno_free(cno));
}

/* EVD-MODIFY-CNO-10: neither from none nor from another CNO */
static void evd_modify_cno__events_queued__new_cno_quiet_until_next(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE old = cno_create(&f->ia);
	DAT_EVD_HANDLE evd[2] = {f->evd, cno_evd(&f->ia, old)};

	for (int i = 0; i < 2; i++) {
		DAT_CNO_HANDLE new = cno_create(&f->ia);

		evd_post_range(evd[i], 1, 3);
		dt_ok(dat_evd_modify_cno(evd[i], new));
		cno_stays_quiet(new);
		evd_post(evd[i], 4);
		cno_expect(new, evd[i]);
		evd_take_range(evd[i], 1, 4);
	}
}

/* EVD-MODIFY-CNO-12: Not even when the last EVD is removed. */
static void evd_modify_cno__waiters_of_the_old__keep_waiting(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE old = cno_create(&f->ia), new = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, old);
	struct cno_waiter waiter = {0};

	cno_waiter_start(&waiter, old, DAT_TIMEOUT_INFINITE);
	dt_ok(dat_evd_modify_cno(evd, new));
	cno_waiter_stays(&waiter);
	dt_ok(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	cno_waiter_stays(&waiter);
	dt_ok(dat_evd_modify_cno(evd, old));
	cno_waiter_stays(&waiter);
	evd_post(evd, 1);
	cno_waiter_gets(&waiter, evd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(evd_modify_cno__another__it_alone_is_notified),
		evd_test(evd_modify_cno__null__nothing_is_notified),
		evd_test(evd_modify_cno__event_meanwhile__old_or_new_is_notified),
		evd_test(evd_modify_cno__trigger_pending__stays_until_named_or_freed),
		evd_test(evd_modify_cno__disabled_around__only_the_new_is_notified),
		evd_test(evd_modify_cno__the_same__nothing_changes),
		evd_test(evd_modify_cno__events_queued__new_cno_quiet_until_next),
		evd_test(evd_modify_cno__waiters_of_the_old__keep_waiting),
	};

	return cmocka_run_group_tests_name("evd_modify_cno", tests, NULL, NULL);
}
