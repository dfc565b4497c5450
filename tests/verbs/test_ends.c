// SPDX-License-Identifier: BSD-2-Clause
/*
 * Error statuses, events and removal of the device: the right status on the right operation, the
 * rest flushed, one event for the end, and a new connection works.
 */
#include "rig.h"

#include <unistd.h>

#include "verbs/transfer/complete.h"

static struct rig rig;

static int ends_setup(void **state)
{
	(void)state;
	rig.qual = 0;
	rig_begin(&rig);
	return 0;
}

static int ends_teardown(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

static const struct {
	enum ibv_wc_status device;
	DAT_DTO_COMPLETION_STATUS status;
} statuses[] = {
	{IBV_WC_SUCCESS, DAT_DTO_SUCCESS},
	{IBV_WC_LOC_LEN_ERR, DAT_DTO_ERR_LOCAL_LENGTH},
	{IBV_WC_LOC_QP_OP_ERR, DAT_DTO_ERR_LOCAL_EP},
	{IBV_WC_LOC_EEC_OP_ERR, DAT_DTO_ERR_LOCAL_EP},
	{IBV_WC_LOC_PROT_ERR, DAT_DTO_ERR_LOCAL_PROTECTION},
	{IBV_WC_WR_FLUSH_ERR, DAT_DTO_ERR_FLUSHED},
	{IBV_WC_MW_BIND_ERR, DAT_RMR_OPERATION_FAILED},
	{IBV_WC_BAD_RESP_ERR, DAT_DTO_ERR_BAD_RESPONSE},
	{IBV_WC_LOC_ACCESS_ERR, DAT_DTO_ERR_LOCAL_PROTECTION},
	{IBV_WC_REM_INV_REQ_ERR, DAT_DTO_ERR_REMOTE_RESPONDER},
	{IBV_WC_REM_ACCESS_ERR, DAT_DTO_ERR_REMOTE_ACCESS},
	{IBV_WC_REM_OP_ERR, DAT_DTO_ERR_REMOTE_RESPONDER},
	{IBV_WC_RETRY_EXC_ERR, DAT_DTO_ERR_TRANSPORT},
	{IBV_WC_RNR_RETRY_EXC_ERR, DAT_DTO_ERR_RECEIVER_NOT_READY},
	{IBV_WC_LOC_RDD_VIOL_ERR, DAT_DTO_ERR_LOCAL_EP},
	{IBV_WC_REM_INV_RD_REQ_ERR, DAT_DTO_ERR_REMOTE_RESPONDER},
	{IBV_WC_REM_ABORT_ERR, DAT_DTO_ERR_REMOTE_RESPONDER},
	{IBV_WC_INV_EECN_ERR, DAT_DTO_ERR_LOCAL_EP},
	{IBV_WC_INV_EEC_STATE_ERR, DAT_DTO_ERR_LOCAL_EP},
	{IBV_WC_FATAL_ERR, DAT_DTO_ERR_TRANSPORT},
	{IBV_WC_RESP_TIMEOUT_ERR, DAT_DTO_ERR_TRANSPORT},
	{IBV_WC_GENERAL_ERR, DAT_DTO_ERR_TRANSPORT},
	{IBV_WC_TM_ERR, DAT_DTO_ERR_TRANSPORT},
	{IBV_WC_TM_RNDV_INCOMPLETE, DAT_DTO_ERR_TRANSPORT},
};

/* DTO-51 to DTO-63: every status that the header of libibverbs has */
static void status__each_of_the_device__as_specified(void **state)
{
	(void)state;
	assert_int_equal(sizeof(statuses) / sizeof(statuses[0]), IBV_WC_TM_RNDV_INCOMPLETE + 1);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		assert_int_equal(statuses[i].device, i);
		assert_int_equal(vrb_status(statuses[i].device), statuses[i].status);
	}
}

/* DTO-65 DTO-67 EP-STATE-53 CONN-EVT-41: each of them on the middle one of three requests */
static void post_send__device_reports_an_error__broken_once_and_anew(void **state)
{
	(void)state;
	for (size_t i = 1; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i].device == IBV_WC_WR_FLUSH_ERR)
			continue;
		assert_int_equal(rig_recv(&rig, &rig.b, 64, 1), DAT_SUCCESS);
		assert_int_equal(rig_recv(&rig, &rig.a, 64, 9), DAT_SUCCESS);
		assert_int_equal(rig_send(&rig, &rig.a, 64, 2, 0), DAT_SUCCESS);
		rig_expect_dto(&rig.a, 2, DAT_DTO_SUCCESS);
		rig_expect_dto(&rig.b, 1, DAT_DTO_SUCCESS);
		assert_int_equal(rig_send(&rig, &rig.a, 64, 3, 0), DAT_SUCCESS); /* it waits */
		assert_int_equal(rig_send(&rig, &rig.a, 64, 4, 0), DAT_SUCCESS);
		fake_status(statuses[i].device);
		assert_int_equal(rig_recv(&rig, &rig.b, 64, 5), DAT_SUCCESS);
		rig_expect_dto(&rig.a, 3, statuses[i].status);
		rig_expect_dto(&rig.a, 4, DAT_DTO_ERR_FLUSHED);
		rig_expect_dto(&rig.a, 9, DAT_DTO_ERR_FLUSHED);
		rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
		rig_expect_dto(&rig.b, 5, DAT_DTO_ERR_FLUSHED);
		rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
		rig_no_event(rig.a.conn);
		rig_no_event(rig.b.conn);
		rig_no_event(rig.a.dto);
		rig_again(&rig);
	}
}

/* Such a message takes a Receive, but its length does not concern the buffer. */
static void recv__taken_by_a_write_with_immediate_data__broken(void **state)
{
	(void)state;
	assert_int_equal(rig_recv(&rig, &rig.b, 64, 1), DAT_SUCCESS);
	assert_int_equal(rig_recv(&rig, &rig.b, 64, 2), DAT_SUCCESS);
	fake_write_next();
	assert_int_equal(rig_send(&rig, &rig.a, 64, 3, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 3, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.b, 1, DAT_DTO_ERR_BAD_RESPONSE);
	rig_expect_dto(&rig.b, 2, DAT_DTO_ERR_FLUSHED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_BROKEN);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_again(&rig);
}

/* CONN-EVT-35: an error that only an event of the device reports */
static void qp_event__of_an_error__broken(void **state)
{
	static const enum ibv_event_type types[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR,
						    IBV_EVENT_QP_ACCESS_ERR};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		DAT_EVENT a, b;

		fake_async(types[i], fake_qp());
		a = rig_event(rig.a.conn);
		b = rig_event(rig.b.conn);
		assert_true((a.event_number == DAT_CONNECTION_EVENT_BROKEN &&
			     b.event_number == DAT_CONNECTION_EVENT_DISCONNECTED) ||
			    (b.event_number == DAT_CONNECTION_EVENT_BROKEN &&
			     a.event_number == DAT_CONNECTION_EVENT_DISCONNECTED));
		rig_again(&rig);
	}
}

/* CONN-EVT-56: the device's retries bridge the time in which a port is down */
static void port_event__down_and_up__connection_stays(void **state)
{
	(void)state;
	fake_async(IBV_EVENT_PORT_ERR, NULL);
	fake_async(IBV_EVENT_PORT_ACTIVE, NULL);
	fake_async(IBV_EVENT_GID_CHANGE, NULL);
	assert_int_equal(rig_recv(&rig, &rig.b, 64, 1), DAT_SUCCESS);
	assert_int_equal(rig_send(&rig, &rig.a, 64, 2, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 2, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.b, 1, DAT_DTO_SUCCESS);
	rig_no_event(rig.a.conn);
	rig_no_event(rig.async);
}

/* EP-DISC-31 EP-FREE-18: a passive side that disconnects at once may cause a reject */
static void reject__of_a_connection__disconnected(void **state)
{
	(void)state;
	fake_reject_late();
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_again(&rig);
}

/* A disconnect while the port is down is sent when the port is up, not before. */
static void ep_disconnect__port_down__peer_notified_when_it_is_up(void **state)
{
	(void)state;
	fake_port(false);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_no_event(rig.b.conn);
	fake_port(true);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_again(&rig);
}

/* The instance is closed while the port is down. */
static void ia_close__port_down__nothing_left(void **state)
{
	(void)state;
	fake_port(false);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_close(&rig);
	assert_int_equal(fake_live(), 0);
	fake_port(true);
	rig_begin(&rig);
}

static void check_dead(void)
{
	DAT_PZ_HANDLE pz;
	DAT_EVENT event;

	event = rig_event(rig.async);
	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, rig.ia);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_BROKEN);
	rig_no_event(rig.async);
	assert_int_equal(DAT_GET_TYPE(core_pz_create(rig.ia, &pz)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(core_ep_reset(rig.a.ep), DAT_SUCCESS);
	assert_int_equal(DAT_GET_TYPE(rig_connect(&rig, NULL, 0)), DAT_INSUFFICIENT_RESOURCES);
}

/* CONN-EVT-48 */
static void device_event__fatal__all_broken_and_refused(void **state)
{
	(void)state;
	fake_async(IBV_EVENT_DEVICE_FATAL, NULL);
	check_dead();
}

/* CONN-EVT-52 CONN-EVT-48: completions are lost with their queue */
static void device_event__of_a_completion_queue__all_broken_and_refused(void **state)
{
	DAT_EVENT event;

	(void)state;
	fake_async(IBV_EVENT_CQ_ERR, NULL);
	event = rig_event(rig.async);
	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, rig.ia);
	assert_int_equal(event.event_data.asynch_error_event_data.reason, DAT_IA_OTHER_ERROR);
	check_dead();
}

static void device__removed__all_broken_and_refused(void **state)
{
	(void)state;
	fake_remove();
	check_dead();
}

/* DTO-16 DTO-17: entries of suppressed requests become free, with few completions of the device */
static void post__many_suppressed__places_come_back(void **state)
{
	unsigned posted = 0;

	(void)state;
	while (posted < 2000) {
		DAT_RETURN ret = rig_write(&rig, &rig.a, 64, posted, DAT_COMPLETION_SUPPRESS_FLAG);

		if (ret == DAT_SUCCESS)
			posted++;
		else
			assert_int_equal(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
		rig_no_event(rig.a.dto);
	}
	assert_int_equal(rig_write(&rig, &rig.a, 64, 5, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 5, DAT_DTO_SUCCESS);
	rig_no_event(rig.a.dto);
}

/*
 * DTO-13 DTO-06: a suppressed request whose work request has no completion succeeds, although the
 * first completion behind it is an error
 */
static void post__failure_behind_suppressed__no_event_for_it(void **state)
{
	(void)state;
	assert_int_equal(rig_send(&rig, &rig.a, 8, 1, 0), DAT_SUCCESS); /* it waits for a Receive */
	assert_int_equal(rig_write(&rig, &rig.a, 64, 2, DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
	rig.rkey++;
	assert_int_equal(rig_write(&rig, &rig.a, 64, 3, 0), DAT_SUCCESS);
	rig.rkey--;
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 4), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 1, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, 3, DAT_DTO_ERR_REMOTE_ACCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
	rig_no_event(rig.a.dto);
}

/* EP-SEND-23 DTO-23: the device tells a foreign peer, which arms its queue for such messages only
 */
static void post_send__solicited_wait__device_is_told(void **state)
{
	const unsigned before = fake_solicited();

	(void)state;
	assert_int_equal(rig_recv(&rig, &rig.b, 64, 1), DAT_SUCCESS);
	assert_int_equal(rig_recv(&rig, &rig.b, 64, 2), DAT_SUCCESS);
	assert_int_equal(rig_send(&rig, &rig.a, 64, 3, 0), DAT_SUCCESS);
	assert_int_equal(fake_solicited() - before, 0);
	assert_int_equal(rig_send(&rig, &rig.a, 64, 4, DAT_COMPLETION_SOLICITED_WAIT_FLAG),
			 DAT_SUCCESS);
	assert_int_equal(fake_solicited() - before, 1);
}

static void receives__posted_before__one_doorbell_for_many(void **state)
{
	unsigned before;

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(rig_recv(&rig, &rig.b, 64, i), DAT_SUCCESS);
	before = fake_doorbells();
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(rig_send(&rig, &rig.a, 64, i, 0), DAT_SUCCESS);
	/* one marker for each call of the consumer */
	assert_int_equal(fake_doorbells() - before, 8);
	for (unsigned i = 0; i < 8; i++) {
		rig_expect_dto(&rig.a, i, DAT_DTO_SUCCESS);
		rig_expect_dto(&rig.b, i, DAT_DTO_SUCCESS);
	}
}

/* Waits until so many requests were made and so many objects are left, for RIG_WAIT_US at most. */
static void expect_requests(unsigned requests, int live)
{
	for (unsigned ms = 0; ms < RIG_WAIT_US / 1000; ms++) {
		if (fake_requests() == requests && fake_live() == live)
			return;
		usleep(1000);
	}
	assert_int_equal(fake_requests(), requests);
	assert_int_equal(fake_live(), live);
}

/*
 * CONN-EVT-11: librdmacm times out while the first request waits for its answer, and the attempt
 * starts again. The first request continues.
 */
static void ep_connect__asked_again_by_the_manager__one_request(void **state)
{
	const unsigned before = fake_requests();
	DAT_CR_HANDLE cr;
	int live;

	(void)state;
	rig_part(&rig);
	rig_reset(&rig);
	assert_int_equal(rig_ask(&rig, DAT_TIMEOUT_INFINITE, NULL, 0), DAT_SUCCESS);
	cr = rig_request(&rig);
	live = fake_live();
	for (unsigned i = 0; i < 3; i++) {
		fake_time_out();
		expect_requests(before + 2 + i,
				live); /* the identifier of the previous request is destroyed */
	}
	rig_no_event(rig.requests);
	assert_int_equal(core_cr_accept(cr, rig.b.ep, 0, NULL), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_no_event(rig.requests);
}

/* Posts a Receive and a Send. Returns how many of the posts were made with cancellation on. */
static unsigned exchange(void)
{
	unsigned before = fake_cancellable(), cancellable;

	assert_int_equal(rig_recv(&rig, &rig.b, 64, 1), DAT_SUCCESS);
	assert_int_equal(rig_send(&rig, &rig.a, 64, 2, 0), DAT_SUCCESS);
	cancellable = fake_cancellable() - before;
	rig_expect_dto(&rig.a, 2, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.b, 1, DAT_DTO_SUCCESS);
	return cancellable;
}

/*
 * Posts and polls may make system calls, except on devices known to make none. On rxe and siw only
 * a Send makes one, and all posts take the slow path.
 */
static void post_and_poll__cancellation__off_unless_the_device_is_known(void **state)
{
	static const struct {
		uint32_t vendor;
		bool posts_quietly;
		bool polls_quietly;
	} devices[] = {{0, false, false},
		       {0xffffff, false, true},
		       {0x626d74, false, true},
		       {0x0002c9, true, true}};

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		unsigned before, most = 0;
		DAT_EVENT event;

		fake_be_vendor(devices[i].vendor);
		ends_setup(state);
		/*
		 * the slow path switches it off: for the first post of each region, and at times
		 * for others
		 */
		for (int j = 0; j < 200 && most < 2; j++) {
			unsigned cancellable = exchange();

			most = cancellable > most ? cancellable : most;
		}
		assert_int_equal(most, devices[i].posts_quietly ? 2 : 0);
		before = fake_cancellable();
		/* there is nothing to poll while the service thread polls */
		for (int j = 0;
		     j < 100 || (devices[i].polls_quietly && fake_cancellable() == before); j++)
			assert_int_equal(DAT_GET_TYPE(core_evd_dequeue(rig.a.dto, &event)),
					 DAT_QUEUE_EMPTY);
		assert_int_equal(fake_cancellable() != before, devices[i].polls_quietly);
		ends_teardown(state);
	}
	fake_be_vendor(0);
}

/* CONN-GEN-03 CONN-GEN-11: InfiniBand pads both */
static void connect__foreign_peer__all_private_data_shown(void **state)
{
	(void)state;
	rig_expect_foreign(&rig, 56, 196);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status__each_of_the_device__as_specified),
		cmocka_unit_test(post_and_poll__cancellation__off_unless_the_device_is_known),
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, ends_setup, ends_teardown)
		RIG_TEST(post_send__device_reports_an_error__broken_once_and_anew),
		RIG_TEST(recv__taken_by_a_write_with_immediate_data__broken),
		RIG_TEST(qp_event__of_an_error__broken),
		RIG_TEST(reject__of_a_connection__disconnected),
		RIG_TEST(port_event__down_and_up__connection_stays),
		RIG_TEST(ep_disconnect__port_down__peer_notified_when_it_is_up),
		RIG_TEST(ia_close__port_down__nothing_left),
		RIG_TEST(post__many_suppressed__places_come_back),
		RIG_TEST(post__failure_behind_suppressed__no_event_for_it),
		RIG_TEST(post_send__solicited_wait__device_is_told),
		RIG_TEST(receives__posted_before__one_doorbell_for_many),
		RIG_TEST(ep_connect__asked_again_by_the_manager__one_request),
		RIG_TEST(device_event__fatal__all_broken_and_refused),
		RIG_TEST(device_event__of_a_completion_queue__all_broken_and_refused),
		RIG_TEST(device__removed__all_broken_and_refused),
		RIG_TEST(connect__foreign_peer__all_private_data_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
