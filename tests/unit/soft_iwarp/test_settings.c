// SPDX-License-Identifier: BSD-2-Clause
/* The settings of connections over TCP: the CRC, the header, the proof of a Write, the limit for a
 * silence, and the options of their sockets. */
#include "flow_stage.h"

#include <netinet/tcp.h>

#include "../../lib/ability.h"
#include "core/base/settings.h"
#include "core/base/status.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif

#define STAG 7u
#define HASTY_LINK_MS 2000u

static int provide_settings(void **state)
{
	(void)state;
	add_adapter("crc", "127.0.0.1 transport=tcp crc=on");
	add_adapter("auto", "127.0.0.1 transport=tcp");
	add_adapter("plain", "127.0.0.1 transport=tcp header=off");
	add_adapter("byte", "127.0.0.1 transport=tcp write_proof=byte");
	add_adapter("unproven", "127.0.0.1 transport=tcp write_proof=off");
	add_adapter("short", "127.0.0.1 transport=tcp link_timeout_ms=2000");
	return 0;
}

static int open_flow_of(const char *name)
{
	(void)open_adapter(name);
	register_region();
	return 0;
}

static int open_crc(void **state)
{
	(void)state;
	return open_flow_of("crc");
}

static int open_auto(void **state)
{
	(void)state;
	return open_flow_of("auto");
}

static int open_plain(void **state)
{
	(void)state;
	return open_flow_of("plain");
}

static int open_byte(void **state)
{
	(void)state;
	return open_flow_of("byte");
}

static int open_unproven(void **state)
{
	(void)state;
	return open_flow_of("unproven");
}

static int open_short(void **state)
{
	(void)state;
	return open_flow_of("short");
}

/* --- the CRC --- */

/* Ours connects to a listener of the test: takes the request. Returns the connection. */
static int take_call(struct frame *request_out)
{
	uint16_t port;
	int listener = listen_at(0, &port);
	int fd;

	connect_with(port, WAIT_US, NULL, 0);
	fd = answer_call(listener);
	close(listener);
	*request_out = get_frame(fd, REQUEST);
	return fd;
}

/* MPA-23 MPA-24: asked for in the request, and used though the reply does not ask for it */
static void crc_on__request_has_c__both_directions_use_it(void **state)
{
	struct frame frame;
	struct taken taken;
	int fd = take_call(&frame);

	(void)state;
	assert_int_equal(frame.head[16] & FLAG_C, FLAG_C);
	frame = make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 4, 4), NULL, 0);
	put_frame(fd, &frame);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_flow(fd, stage.a, true); /* get_fpdu checks each CRC */
	get_fpdu(&taken);
	post_send_at(0, 10, 0);
	get_fpdu(&taken);
	assert_int_equal(taken.size, 10);
	expect_dto(0, DAT_DTO_SUCCESS, 10);
	post_recv_at(100, 10);
	peer_send("abc", 3);
	expect_dto(100, DAT_DTO_SUCCESS, 3);
	hang_up();
}

/* MPA-23 MPA-24: the responder asks for it in its reply */
static void crc_on__reply_has_c__both_directions_use_it(void **state)
{
	struct frame frame = make_frame(REQUEST, 0, 1, NULL, 0);
	int fd = dial(stage.qual);
	struct taken taken;

	(void)state;
	put_frame(fd, &frame);
	take_request();
	accept_with(NULL, 0);
	frame = get_frame(fd, REPLY);
	assert_int_equal(frame.head[16] & FLAG_C, FLAG_C);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_flow(fd, stage.b, true);
	post_recv_at(100, 10);
	peer_send("abc", 3);
	expect_dto(100, DAT_DTO_SUCCESS, 3);
	post_send_at(0, 10, 0);
	get_fpdu(&taken);
	expect_dto(0, DAT_DTO_SUCCESS, 10);
	hang_up();
}

/* MPA-23: the default over the loopback interface */
static void crc_auto__request_on_loopback__not_asked_for(void **state)
{
	struct frame frame;
	int fd = take_call(&frame);

	(void)state;
	assert_int_equal(frame.head[16] & FLAG_C, 0);
	frame = make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 4, 4), NULL, 0);
	put_frame(fd, &frame);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_flow(fd, stage.a, false);
	hang_up();
}

/* MPA-23: the same of the responder */
static void crc_auto__reply_on_loopback__not_asked_for(void **state)
{
	struct frame frame = make_frame(REQUEST, 0, 1, NULL, 0);
	int fd = dial(stage.qual);

	(void)state;
	put_frame(fd, &frame);
	take_request();
	accept_with(NULL, 0);
	assert_int_equal(get_frame(fd, REPLY).head[16] & FLAG_C, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_flow(fd, stage.b, false);
	hang_up();
}

/* --- the header --- */

/* IWCM-20: the listener gets the consumer's bytes, and nothing in front of them */
static void header_off__request__private_data_alone(void **state)
{
	struct frame frame;
	uint16_t port;
	int listener = listen_at(0, &port);
	int fd;

	(void)state;
	connect_with(port, WAIT_US, "hello", 5);
	fd = answer_call(listener);
	close(listener);
	frame = get_frame(fd, REQUEST);
	/* the words of the enhanced set-up come first */
	assert_int_equal(frame_size(&frame), IW_MPA_HEAD + 4 + 5);
	assert_memory_equal(frame.data + 4, "hello", 5);
	frame = make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 4, 4), "world", 5);
	put_frame(fd, &frame);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_flow(fd, stage.a, false);
	hang_up();
}

/* IWCM-20: a listener is found by its port alone, and is not looked for at any other */
static void header_off__qualifier_is_no_port__invalid_parameter(void **state)
{
	struct sockaddr_in address = loopback(0);

	(void)state;
	assert_int_equal(core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&address, 65536, WAIT_US, 0,
					 NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
			 core_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
}

/* --- the proof of a Write --- */

/* RDMAP-36 EP-RDMAW-08 COMPAT-28: a Write of length 0 has no byte; it completes as a Send does */
static void expect_no_question(void)
{
	struct taken taken;

	post_write_at(0, 0, STAG, 1000, 0);
	expect_dto(0, DAT_DTO_SUCCESS, 0);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_WRITE);
	expect_served();
	expect_silence(flow.fd);
}

/* RDMAP-36: the first byte of the newest Write; nobody else gets it */
static void proof_byte__foreign_peer__reads_the_first_byte(void **state)
{
	struct iw_read_request request;
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	expect_no_question();
	post_write_at(100, 10, STAG, 2000, 0);
	get_fpdu(&taken);
	request = get_read_request();
	assert_int_equal(request.size, 1);
	assert_int_equal(request.source_stag, STAG);
	assert_int_equal(request.source_offset, 2000);
	expect_quiet(stage.evd);
	peer_respond(request.sink_stag, request.sink_offset, "x", 1, true);
	expect_dto(100, DAT_DTO_SUCCESS, 10);
	expect_no_question();
	expect_untouched(flow.region, REGION);
	hang_up();
}

/* RDMAP-24 RDMAP-36: no more than that byte is taken */
static void proof_byte__two_bytes_come__breaks(void **state)
{
	struct iw_read_request request;
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	post_write_at(100, 10, STAG, 2000, 0);
	get_fpdu(&taken);
	request = get_read_request();
	peer_respond(request.sink_stag, request.sink_offset, "xy", 2, true);
	expect_terminate(IW_ERROR(1, 1, 1), NULL);
	expect_dto(100, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
}

/* RDMAP-36: a Write completes as a Send does, and nothing is asked */
static void proof_off__foreign_peer__completes_when_sent(void **state)
{
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	post_write_at(0, 10, STAG, 0, 0);
	expect_dto(0, DAT_DTO_SUCCESS, 10);
	get_fpdu(&taken);
	expect_served();
	expect_silence(flow.fd);
	hang_up();
}

/* RDMAP-36 RDMAP-37: between two of ours the setting changes nothing */
static void proof_off__own_peer__completes_when_counted(void **state)
{
	struct taken taken;

	(void)state;
	be_called_by_own(0);
	put(flow.fd, rtr_write, sizeof(rtr_write));
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	post_write_at(0, 10, STAG, 0, 0);
	get_fpdu(&taken);
	expect_served();
	expect_quiet(stage.evd);
	expect_silence(flow.fd);
	peer_counts(0, 1);
	expect_dto(0, DAT_DTO_SUCCESS, 10);
	hang_up();
}

/* --- the limit for a silence --- */

static int option(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, name, &value, &size), 0);
	return value;
}

/* IWCM-34: an idle connection is given up after exactly the limit, in whole seconds */
static void check_limit(int fd, uint32_t limit_s)
{
	int on = 0, sum, value;
	socklen_t size = sizeof(on);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &size), 0);
	assert_int_equal(on, 1);
	sum = option(fd, TCP_KEEPIDLE) + option(fd, TCP_KEEPINTVL) * option(fd, TCP_KEEPCNT);
	assert_true(sum <= (int)limit_s && sum > (int)limit_s * 3 / 4);
	assert_int_equal(option(fd, TCP_USER_TIMEOUT), 0); /* IWCM-35 */
	size = sizeof(value);
	if (!getsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &value, &size))
		assert_true(value == 1000 || value <= (int)limit_s * 125 + 10);
}

/* IWCM-34 IWCM-35: the socket that was accepted, and the one that was connected */
static void socket_options__called_and_calling__set(void **state)
{
	(void)state;
	be_called(0);
	check_limit(fd_of_flow(), HASTY_LINK_MS / 1000);
	assert_int_equal(option(fd_of_flow(), TCP_NODELAY), 1);
	hang_up();
	be_calling_with(0, 4, 4);
	check_limit(fd_of_flow(), HASTY_LINK_MS / 1000);
	assert_int_equal(option(fd_of_flow(), TCP_NODELAY), 1);
}

#define CONTROL_SIZE 16u /* TCP_CA_NAME_MAX */

static void get_control(int fd, char name[CONTROL_SIZE])
{
	socklen_t size = CONTROL_SIZE;

	memset(name, 0, CONTROL_SIZE);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
}

static bool is_reno_allowed(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);

	close(fd);
	return !rc;
}

/* Reno, which neither paces nor probes, serves a connection of the loopback interface. */
static void congestion_control__called_on_loopback__reno(void **state)
{
	char name[CONTROL_SIZE];

	(void)state;
	ABILITY_NEED(is_reno_allowed(), "net.ipv4.tcp_allowed_congestion_control without reno");
	be_called(0);
	get_control(fd_of_flow(), name);
	assert_string_equal(name, "reno");
}

static void congestion_control__calling_on_loopback__reno(void **state)
{
	char name[CONTROL_SIZE];

	(void)state;
	ABILITY_NEED(is_reno_allowed(), "net.ipv4.tcp_allowed_congestion_control without reno");
	be_calling_with(0, 4, 4);
	get_control(fd_of_flow(), name);
	assert_string_equal(name, "reno");
}

/* DDP-17 IWCM-35: a peer that takes nothing, but whose kernel answers, is waited for */
static void peer_takes_nothing__longer_than_the_limit__not_broken(void **state)
{
	const uint64_t end = now_ms() + 3 * HASTY_LINK_MS;
	static uint8_t bytes[REGION];
	unsigned posted = 0;

	(void)state;
	be_calling_with(0, 4, 4);
	get(flow.fd, bytes, 20); /* RTR */
	make_pattern(flow.region, REGION);
	/* until TCP takes no more: then the last one stays outstanding */
	for (;;) {
		DAT_EVENT event;
		DAT_COUNT more;

		post_send_at(0, REGION, 0);
		posted++;
		if (core_evd_wait(stage.evd, 1000000, 1, &event, &more) != DAT_SUCCESS)
			break;
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_SUCCESS);
	}
	while (now_ms() < end) {
		DAT_EVENT event;
		DAT_COUNT more;

		if (core_evd_wait(stage.evd, 100000, 1, &event, &more) == DAT_SUCCESS)
			fail_msg("event 0x%x", event.event_number);
	}
	for (; posted; posted--) {
		struct taken taken;
		size_t size = 0;

		do {
			get_fpdu(&taken);
			memcpy(bytes + size, taken.payload, taken.size);
			size += taken.size;
		} while (!taken.ddp.is_last);
		assert_int_equal(size, REGION);
		expect_pattern(bytes, REGION);
	}
	expect_dto(0, DAT_DTO_SUCCESS, REGION);
	hang_up();
}

#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(crc_on__request_has_c__both_directions_use_it, open_crc),
		TEST(crc_on__reply_has_c__both_directions_use_it, open_crc),
		TEST(crc_auto__request_on_loopback__not_asked_for, open_auto),
		TEST(crc_auto__reply_on_loopback__not_asked_for, open_auto),
		TEST(header_off__request__private_data_alone, open_plain),
		TEST(header_off__qualifier_is_no_port__invalid_parameter, open_plain),
		TEST(proof_byte__foreign_peer__reads_the_first_byte, open_byte),
		TEST(proof_byte__two_bytes_come__breaks, open_byte),
		TEST(proof_off__foreign_peer__completes_when_sent, open_unproven),
		TEST(proof_off__own_peer__completes_when_counted, open_unproven),
		TEST(socket_options__called_and_calling__set, open_short),
		TEST(congestion_control__called_on_loopback__reno, open_unproven),
		TEST(congestion_control__calling_on_loopback__reno, open_unproven),
		TEST(peer_takes_nothing__longer_than_the_limit__not_broken, open_short),
	};

	return cmocka_run_group_tests(tests, provide_settings, NULL);
}
