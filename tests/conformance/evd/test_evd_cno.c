// SPDX-License-Identifier: BSD-2-Clause
/* How an event dispatcher notifies a CNO: association, enabling, and what keeps it quiet. */
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
	evd_post(evd, 1); /* nobody waits any more */
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

/* EVD-STREAM-23: seen from another thread, right after each wake-up */
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

/* EVD-DISABLE-06: a trigger from before is told at most once, and its event is queued */
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

/* --- dat_evd_modify_cno --- */

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

/* EVD-MODIFY-CNO-03 EVD-MODIFY-CNO-05 EVD-MODIFY-CNO-16: the event comes during the call */
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

/* EVD-MODIFY-CNO-05 CNO-WAIT-27: what is left with the old CNO is told once, or not after a free */
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

/* EVD-MODIFY-CNO-09: one user still, and a trigger that is pending stays */
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

/* IA-OPEN-06 IA-OPEN-07 EVD-MODIFY-CNO-11: an overflow elsewhere is an asynchronous event */
static void evd_modify_cno__asynchronous_evd__its_events_notify(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE full = dt_evd_create(&f->ia, 1, DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE conn = dt_evd_create(&f->ia, 8, DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE ep = evd_flusher(&f->ia, full, conn, NULL);

	assert_ptr_equal(evd_query(f->ia.async).cno_handle, DAT_HANDLE_NULL);
	dt_ok(dat_evd_modify_cno(f->ia.async, cno));
	assert_ptr_equal(evd_query(f->ia.async).cno_handle, cno);
	evd_flush(ep, 1);
	cno_is_quiet(cno);
	evd_flush(ep, 2);
	cno_expect(cno, f->ia.async);
	assert_int_equal(dt_event(f->ia.async).event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	dt_ok(dat_evd_modify_cno(f->ia.async, DAT_HANDLE_NULL));
	dt_ok(dat_cno_free(cno));
}

/* EVD-MODIFY-CNO-12: not even when the last dispatcher leaves */
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

/* EVD-MODIFY-CNO-13 */
static void evd_modify_cno__no_evd__invalid_handle(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE dead = cno_evd(&f->ia, DAT_HANDLE_NULL);

	dt_ok(dat_evd_free(dead));
	const DAT_HANDLE bad[] = {DAT_HANDLE_NULL, dead,     cno,
				  f->ia.ia,	   f->ia.pz, DT_NEVER_A_HANDLE};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		dt_fails(dat_evd_modify_cno(bad[i], cno), DAT_INVALID_HANDLE);
		dt_fails(dat_evd_modify_cno(bad[i], DAT_HANDLE_NULL), DAT_INVALID_HANDLE);
	}
	dt_ok(dat_cno_free(cno));
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
		evd_test(evd_modify_cno__another__it_alone_is_notified),
		evd_test(evd_modify_cno__null__nothing_is_notified),
		evd_test(evd_modify_cno__event_meanwhile__old_or_new_is_notified),
		evd_test(evd_modify_cno__trigger_pending__stays_until_named_or_freed),
		evd_test(evd_modify_cno__disabled_around__only_the_new_is_notified),
		evd_test(evd_modify_cno__the_same__nothing_changes),
		evd_test(evd_modify_cno__events_queued__new_cno_quiet_until_next),
		evd_test(evd_modify_cno__asynchronous_evd__its_events_notify),
		evd_test(evd_modify_cno__waiters_of_the_old__keep_waiting),
		evd_test(evd_modify_cno__no_evd__invalid_handle),
		evd_test(evd_free__with_cno__one_user_less),
	};

	return cmocka_run_group_tests_name("evd_cno", tests, NULL, NULL);
}
