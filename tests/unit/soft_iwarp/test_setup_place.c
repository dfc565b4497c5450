// SPDX-License-Identifier: BSD-2-Clause
/* How an initiator finds the port at which a qualifier is served, and the addresses it can reach.
 */
#include "setup_peer.h"
#include "setup_stage.h"

#include <pthread.h>

/* --- initiators --- */

struct alien {
	int listener;
	uint16_t port;
	const char *text; /* it says so and closes; NULL: it closes at once */
	pthread_t thread;
};

static void *alien_run(void *argument)
{
	const struct alien *alien = argument;
	uint8_t bytes[256];
	int fd;

	while ((fd = accept4(alien->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		/* reads the request, so that closing does not reset the connection */
		if (recv(fd, bytes, sizeof(bytes), 0) > 0 && alien->text)
			(void)!send(fd, alien->text, strlen(alien->text), MSG_NOSIGNAL);
		close(fd);
	}
	return NULL;
}

static void start_alien(struct alien *alien, const char *text)
{
	alien->text = text;
	alien->listener = listen_at(0, &alien->port);
	assert_int_equal(pthread_create(&alien->thread, NULL, alien_run, alien), 0);
}

static void stop_alien(struct alien *alien)
{
	shutdown(alien->listener, SHUT_RDWR);
	pthread_join(alien->thread, NULL);
	close(alien->listener);
}

/* Both endpoints are connected through that qualifier. */
static void expect_connection(void)
{
	take_request();
	accept_with(NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect_quiet(stage.request_evd);
	ok(core_ep_disconnect(stage.a, DAT_CLOSE_ABRUPT_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.a));
	ok(core_ep_reset(stage.b));
}

/* IWCM-07 CONN-GEN-10 */
static void connect__alien_server_at_the_first_place__next_one_serves(void **state)
{
	static const char *const texts[] = {NULL, "SSH-2.0-OpenSSH\r\n", "MPA ID Req Frame"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct alien alien;
		DAT_PSP_HANDLE psp;

		start_alien(&alien, texts[i]);
		psp = listen_for(alien.port);
		connect_with(alien.port, WAIT_US, NULL, 0);
		expect_connection();
		ok(core_psp_free(psp));
		stop_alien(&alien);
	}
}

/* IWCM-07 IWCM-12 */
static void connect__listener_of_another_qualifier__next_one_serves(void **state)
{
	uint8_t bytes[CM_REJECT_MAX];
	size_t size = cm_put_reject(CM_REASON_NOT_HERE, NULL, 0, bytes);
	struct frame frame = make_enhanced(REPLY, FLAG_R, 0, bytes, size);
	uint16_t port;
	int other = listen_at(0, &port);
	DAT_PSP_HANDLE psp = listen_for(port);
	int fd;

	(void)state;
	connect_with(port, WAIT_US, NULL, 0);
	fd = answer_call(other);
	get_frame(fd, REQUEST);
	put_frame(fd, &frame);
	expect_closed(fd);
	expect_connection();
	ok(core_psp_free(psp));
	close(other);
}

/* IWCM-07 */
static void connect__silent_server_at_the_first_place__next_one_in_time(void **state)
{
	uint16_t port;
	int alien = listen_at(0, &port);
	DAT_PSP_HANDLE psp = listen_for(port);
	int fd;

	(void)state;
	connect_with(port, 5000000, NULL, 0);
	fd = answer_call(alien);
	expect_connection();
	/* the socket at the silent server is closed, too */
	get_frame(fd, REQUEST);
	expect_closed(fd);
	ok(core_psp_free(psp));
	close(alien);
}

/* IWCM-07 IWCM-26 CR-ACCEPT-22 */
static void connect__consumer_answers_late__one_request_and_established(void **state)
{
	(void)state;
	connect_with(stage.qual, 5000000, NULL, 0);
	take_request();
	/* longer than the share of one place */
	assert_int_equal(poll(NULL, 0, 1500), 0);
	accept_with(NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect_quiet(stage.request_evd);
}

/* The same with a silent server at another place, so that both sockets wait. */
static void connect__late_and_a_silent_server__established(void **state)
{
	uint16_t port;
	int alien = listen_at(0, &port);
	DAT_PSP_HANDLE psp = listen_for(port);
	uint16_t third;
	int other = listen_at(cm_port(port, 2), &third);

	(void)state;
	connect_with(port, 5000000, NULL, 0);
	take_request();
	close(answer_call(other)); /* the share of the second place is over */
	accept_with(NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect_quiet(stage.request_evd);
	ok(core_psp_free(psp));
	close(alien);
	close(other);
}

/* IWCM-08 EP-CONNECT-20 COMPAT-29 */
static void connect__nobody_listens__refused_at_once(void **state)
{
	uint64_t begin = now_ms();
	uint16_t port;
	int other = listen_at(0, &port);

	(void)state;
	close(other);
	connect_with(port, WAIT_US, NULL, 0);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	ok(core_ep_reset(stage.a));
	connect_with((DAT_CONN_QUAL)getpid() << 32 | 7, WAIT_US, NULL, 0);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	ok(core_ep_reset(stage.a));
	assert_true(now_ms() - begin < 1000);
	/* a listener that is there later */
	stage.psp = listen_for(port);
	connect_with(port, WAIT_US, NULL, 0);
	expect_connection();
}

/* CONN-GEN-08 IWCM-07 */
static void connect__wide_qualifiers__each_its_own_listener(void **state)
{
	DAT_CONN_QUAL qual = (DAT_CONN_QUAL)getpid() << 32;

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		listen_for(qual + i);
	for (unsigned i = 0; i < 8; i++) {
		DAT_CR_PARAM param;
		uint8_t number = (uint8_t)i;
		DAT_EVENT event;

		connect_with(qual + i, WAIT_US, &number, 1);
		event = next_of(stage.request_evd);
		assert_true(event.event_data.cr_arrival_event_data.conn_qual == qual + i);
		stage.cr = event.event_data.cr_arrival_event_data.cr_handle;
		ok(core_cr_query(stage.cr, DAT_CR_FIELD_ALL, &param));
		assert_int_equal(*(uint8_t *)param.private_data, i);
		ok(core_cr_reject(stage.cr));
		expect(DAT_CONNECTION_EVENT_PEER_REJECTED);
		ok(core_ep_reset(stage.a));
	}
}

/* IWCM-19: what answers without header at another port than the qualifier's does not serve it */
static void connect__foreign_answer_at_a_derived_port__not_taken(void **state)
{
	uint16_t first, second;
	int probe = listen_at(0, &first);
	int other = listen_at(cm_port(first, 1), &second);
	struct frame frame;
	int fd;

	(void)state;
	close(probe);
	for (int is_rejected = 0; is_rejected < 2; is_rejected++) {
		connect_with(first, WAIT_US, NULL, 0);
		fd = answer_call(other);
		get_frame(fd, REQUEST);
		frame = make_enhanced(REPLY, is_rejected ? FLAG_R : 0, WORDS(WORD_A | WORD_C, 1, 1),
				      "no", 2);
		put_frame(fd, &frame);
		expect_closed(fd);
		expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		ok(core_ep_reset(stage.a));
	}
	close(other);
}

/* --- addresses --- */

static DAT_RETURN connect_to_address(const void *address)
{
	return core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)(uintptr_t)address, stage.qual, WAIT_US,
			       0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static void expect_unsupported(const void *address)
{
	DAT_RETURN ret = connect_to_address(address);

	assert_int_equal(DAT_GET_TYPE(ret), DAT_INVALID_ADDRESS);
	assert_int_equal(DAT_GET_SUBTYPE(ret), DAT_INVALID_ADDRESS_UNSUPPORTED);
	assert_int_equal(state_of(stage.a), DAT_EP_STATE_UNCONNECTED);
}

static struct sockaddr_in6 address_of(const char *text)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6};

	assert_int_equal(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
	return address;
}

/* IWCM-55 IWCM-57 IWCM-58 */
static void connect__ipv6__like_ipv4_and_to_ipv6_alone(void **state)
{
	const struct sockaddr_in6 own = address_of("::1"), mapped = address_of("::ffff:127.0.0.1");
	const struct sockaddr_in other = loopback(0);
	DAT_CR_PARAM param;

	(void)state;
	ok(connect_to_address(&own));
	param = take_request();
	assert_memory_equal(&((struct sockaddr_in6 *)param.remote_ia_address_ptr)->sin6_addr,
			    &own.sin6_addr, sizeof(own.sin6_addr));
	accept_with(NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	ok(core_ep_disconnect(stage.a, DAT_CLOSE_ABRUPT_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.a));
	expect_unsupported(&mapped);
	expect_unsupported(&other);
	expect_quiet(stage.evd);
}

/* IWCM-57 */
static void connect__ipv4_adapter__not_to_ipv6(void **state)
{
	const struct sockaddr_in6 own = address_of("::1");

	(void)state;
	expect_unsupported(&own);
}

int main(void)
{
#define one(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
	const struct CMUnitTest tests[] = {
		one(connect__alien_server_at_the_first_place__next_one_serves),
		one(connect__listener_of_another_qualifier__next_one_serves),
		one(connect__silent_server_at_the_first_place__next_one_in_time),
		one(connect__consumer_answers_late__one_request_and_established),
		one(connect__late_and_a_silent_server__established),
		one(connect__nobody_listens__refused_at_once),
		one(connect__wide_qualifiers__each_its_own_listener),
		one(connect__foreign_answer_at_a_derived_port__not_taken),
		one(connect__ipv4_adapter__not_to_ipv6),
		cmocka_unit_test_setup_teardown(connect__ipv6__like_ipv4_and_to_ipv6_alone,
						open_six, close_stage),
	};

	return cmocka_run_group_tests_name("setup_place", tests, provide, NULL);
}
