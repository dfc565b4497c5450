// SPDX-License-Identifier: BSD-2-Clause
/* dat_evd_dequeue and dat_evd_post_se: taking events, and putting software events. */
#include "evd_util.h"

/* EVD-DEQUEUE-01 EVD-STREAM-01 EVD-STREAM-09 EVD-POST-SE-01 EVD-POST-SE-02 EVD-POST-SE-12 */
static void evd_dequeue__several_events__in_posting_order(void **state)
{
	struct evd_fixture *f = *state;

	evd_post_range(f->evd, 0xfff0, EVD_QLEN);
	evd_take_range(f->evd, 0xfff0, EVD_QLEN);
	dt_no_event(f->evd);
}

/* EVD-DEQUEUE-02 EVD-DEQUEUE-03 */
static void evd_dequeue__empty__queue_empty_at_once(void **state)
{
	struct evd_fixture *f = *state;
	uint64_t start = dt_now_us();
	DAT_EVENT event;

	/* compares the raw code, as existing consumers do */
	assert_int_equal(dat_evd_dequeue(f->evd, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(DAT_QUEUE_EMPTY, 0x000d0000);
	assert_true(dt_now_us() - start < DT_WAIT_US / 2);
}

/* EVD-DEQUEUE-06 EVD-DISABLE-04 */
static void evd_dequeue__disabled__works(void **state)
{
	struct evd_fixture *f = *state;

	dt_ok(dat_evd_disable(f->evd));
	evd_post(f->evd, 1);
	evd_take(f->evd, 1);
	dt_no_event(f->evd);
}

/* EVD-DEQUEUE-07 EVD-SET-UNWAITABLE-05 */
static void evd_dequeue__unwaitable__works(void **state)
{
	struct evd_fixture *f = *state;

	dt_ok(dat_evd_set_unwaitable(f->evd));
	evd_post(f->evd, 1);
	evd_take(f->evd, 1);
	dt_no_event(f->evd);
}

/* EVD-DEQUEUE-04 EVD-DEQUEUE-05 EVD-WAIT-17: Refused although an event is queued. The event
 * stays. */
static void evd_dequeue__waiter_blocked__invalid_state_and_nothing_removed(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};
	DAT_EVENT event;

	evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 2);
	dt_fails_with(dat_evd_dequeue(f->evd, &event), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_WAITER);
	evd_post(f->evd, 1);
	dt_fails_with(dat_evd_dequeue(f->evd, &event), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_WAITER);
	evd_post(f->evd, 2);
	dt_ok(evd_waiter_join(&waiter));
	evd_check_soft(&waiter.event, f->evd, 1);
	assert_int_equal(waiter.nmore, 1);
	evd_take(f->evd, 2);
	dt_no_event(f->evd);
}

/* EVD-DEQUEUE-09: the completion of an UNSIGNALLED request */
static void evd_dequeue__non_notifying_event__returned(void **state)
{
	static struct dt_pair pair;
	struct dt_ia probe;
	DAT_EP_ATTR attr;

	(void)state;
	dt_ia_open(&probe);
	dt_ep_attr(&probe, &attr);
	dt_ia_close(&probe);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	dt_pair_open_with(&pair, &attr, NULL);
	dt_ok(dat_ep_post_recv(pair.b.ep, 0, NULL, dt_cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	dt_ok(dat_ep_post_send(pair.a.ep, 0, NULL, dt_cookie(2), DAT_COMPLETION_UNSIGNALLED_FLAG));
	dt_expect_dto(pair.b.recv, pair.b.ep, 1, DAT_DTO_SUCCESS, 0);
	assert_int_equal(dt_event_poll(pair.a.request)
				 .event_data.dto_completion_event_data.user_cookie.as_64,
			 2);
	dt_pair_close(&pair);
}

/* EVD-DEQUEUE-11 EVD-POST-SE-15 */
static void evd_dequeue__bad_handle__invalid_handle(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE freed = dt_evd_create(&f->ia, 4, DAT_EVD_SOFTWARE_FLAG);
	const DAT_HANDLE bad[] = {DAT_HANDLE_NULL, f->ia.pz, f->ia.ia, DT_NEVER_A_HANDLE, freed};
	DAT_EVENT event;

	dt_ok(dat_evd_free(freed));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		dt_fails(dat_evd_dequeue(bad[i], &event), DAT_INVALID_HANDLE);
		dt_fails(evd_try_post(bad[i], 1), DAT_INVALID_HANDLE);
	}
}

/* EVD-DEQUEUE-12: A refused call removes nothing. */
static void evd_dequeue__null_event__invalid_parameter(void **state)
{
	struct evd_fixture *f = *state;

	evd_post(f->evd, 1);
	dt_fails_with(dat_evd_dequeue(f->evd, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	evd_take(f->evd, 1);
}

/* EVD-DEQUEUE-13 EVD-STREAM-07 EVD-STREAM-08: Nothing after the structure is written, and the
 * result does not depend on its old content. */
static void evd_dequeue__poisoned_structure__same_event(void **state)
{
	struct evd_fixture *f = *state;
	struct {
		DAT_EVENT event;
		unsigned char guard[64];
	} out;

	assert_int_equal(sizeof(DAT_EVENT), 48);
	assert_int_equal(offsetof(DAT_EVENT, event_number), 0);
	assert_int_equal(offsetof(DAT_EVENT, evd_handle), 8);
	assert_int_equal(offsetof(DAT_EVENT, event_data), 16);
	for (int poison = 0; poison < 256; poison += 85) {
		evd_post(f->evd, 0x1234);
		memset(&out, poison, sizeof(out));
		dt_ok(dat_evd_dequeue(f->evd, &out.event));
		evd_check_soft(&out.event, f->evd, 0x1234);
		dt_check_bytes(out.guard, sizeof(out.guard), (unsigned char)poison);
	}
}

/* EVD-POST-SE-02: Any pointer value; it is never dereferenced. */
static void evd_post_se__odd_pointers__delivered_unchanged(void **state)
{
	static const uintptr_t values[] = {0, 1, UINTPTR_MAX, (uintptr_t)1 << 63};
	struct evd_fixture *f = *state;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		evd_post(f->evd, values[i]);
		evd_take(f->evd, values[i]);
	}
}

/* EVD-POST-SE-03 EVD-POST-SE-13 */
static void evd_post_se__structure_reused__event_was_copied(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	event.evd_handle = f->ia.async;
	event.event_data.software_event_data.pointer = (DAT_PVOID)0x77;
	dt_ok(dat_evd_post_se(f->evd, &event));
	memset(&event, 0xff, sizeof(event));
	evd_take(f->evd, 0x77);
	dt_no_event(f->ia.async);
}

/* EVD-POST-SE-04 EVD-POST-SE-05 */
static void evd_post_se__other_event_number__invalid_parameter(void **state)
{
	static const unsigned int bad[] = {
		0,
		DAT_DTO_COMPLETION_EVENT,
		DAT_CONNECTION_EVENT_ESTABLISHED,
		DAT_ASYNC_ERROR_EVD_OVERFLOW,
		0x10000,
		0x10002,
	};
	struct evd_fixture *f = *state;
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		event.event_number = (DAT_EVENT_NUMBER)bad[i];
		dt_fails_with(dat_evd_post_se(f->evd, &event), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
	}
	dt_fails_with(dat_evd_post_se(f->evd, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_no_event(f->evd);
}

/* EVD-POST-SE-06 EVD-CREATE-05 */
static void evd_post_se__evd_without_software_flag__invalid_parameter(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 4, DAT_EVD_DEFAULT_FLAG);

	dt_fails_with(evd_try_post(evd, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	dt_no_event(evd);
	dt_fails_with(evd_try_post(f->ia.async, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	dt_no_event(f->ia.async);
}

/* EVD-POST-SE-07 EVD-POST-SE-08 EVD-POST-SE-09 EVD-STREAM-29 */
static void evd_post_se__queue_full__refused_without_overflow(void **state)
{
	struct evd_fixture *f = *state;

	evd_post_range(f->evd, 0, EVD_QLEN);
	for (int i = 0; i < 3; i++)
		dt_fails(evd_try_post(f->evd, 99), DAT_QUEUE_FULL);
	dt_stays_empty(f->ia.async);
	evd_take(f->evd, 0);
	evd_post(f->evd, EVD_QLEN);
	dt_fails(evd_try_post(f->evd, 99), DAT_QUEUE_FULL);
	evd_take_range(f->evd, 1, EVD_QLEN);
	dt_no_event(f->evd);
}

/* EVD-POST-SE-10 EVD-STREAM-20 EVD-STREAM-23 */
static void evd_post_se__waiter_blocked__released_at_its_threshold(void **state)
{
	struct evd_fixture *f = *state;
	struct evd_waiter waiter = {0};

	evd_waiter_start(&waiter, f->evd, DAT_TIMEOUT_INFINITE, 2);
	evd_post(f->evd, 1);
	evd_waiter_stays(&waiter);
	evd_post(f->evd, 2);
	dt_ok(evd_waiter_join(&waiter));
	evd_check_soft(&waiter.event, f->evd, 1);
	evd_take(f->evd, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(evd_dequeue__several_events__in_posting_order),
		evd_test(evd_dequeue__empty__queue_empty_at_once),
		evd_test(evd_dequeue__disabled__works),
		evd_test(evd_dequeue__unwaitable__works),
		evd_test(evd_dequeue__waiter_blocked__invalid_state_and_nothing_removed),
		cmocka_unit_test(evd_dequeue__non_notifying_event__returned),
		evd_test(evd_dequeue__bad_handle__invalid_handle),
		evd_test(evd_dequeue__null_event__invalid_parameter),
		evd_test(evd_dequeue__poisoned_structure__same_event),
		evd_test(evd_post_se__odd_pointers__delivered_unchanged),
		evd_test(evd_post_se__structure_reused__event_was_copied),
		evd_test(evd_post_se__other_event_number__invalid_parameter),
		evd_test(evd_post_se__evd_without_software_flag__invalid_parameter),
		evd_test(evd_post_se__queue_full__refused_without_overflow),
		evd_test(evd_post_se__waiter_blocked__released_at_its_threshold),
	};

	return cmocka_run_group_tests_name("evd_dequeue", tests, NULL, NULL);
}
