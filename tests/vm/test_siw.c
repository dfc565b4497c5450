// SPDX-License-Identifier: BSD-2-Clause
/*
 * The TCP engine against the kernel's siw, which a program without OpenDAT uses: both sides in this
 * process, on the address of the virtual machine. siw as an initiator does not know the
 * peer-to-peer model, so that it has to send first (MPA-18).
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn_util.h"
#include "dto_util.h"
#include "plain_verbs.h"
#include "shared/cm.h"

#define SIZES_END 65536u
#define AT_RECV 0u
#define AT_SEND (256u * 1024u)

static struct scene {
	struct dt_ia ia;
	struct dt_listener listener;
	struct dt_ep ep;
	struct dt_buf buf;
	struct plain plain;
	uint16_t port; /* of the plain listener */
} scene;

static int open_scene(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	dt_ia_open(&scene.ia);
	/* a TCP port, so that a foreign peer reaches it (IWCM-18) */
	scene.listener.evd = dt_evd_create(&scene.ia, 8, DAT_EVD_CR_FLAG);
	dt_ok(dat_psp_create_any(scene.ia.ia, &scene.listener.qual, scene.listener.evd,
				 DAT_PSP_CONSUMER_FLAG, &scene.listener.psp));
	dt_ep_create(&scene.ia, scene.ia.pz, NULL, &scene.ep);
	dt_buf_create(&scene.ia, scene.ia.pz, &scene.buf, PLAIN_ROOM, DAT_MEM_PRIV_ALL_FLAG);
	scene.port = plain_listen(&scene.plain);
	return 0;
}

static int close_scene(void **state)
{
	(void)state;
	plain_end(&scene.plain);
	plain_close(&scene.plain);
	dt_ia_abort(&scene.ia);
	dt_mem_free(scene.buf.p, scene.buf.mapped);
	return 0;
}

/* --- connections --- */

static const char request_data[] = "what the initiator says";
static const char reply_data[] = "what the responder says";

static void start_attempt(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};

	assert_int_equal(inet_pton(AF_INET, PLAIN_ADDRESS, &address.sin_addr), 1);
	dt_ok(dat_ep_connect(scene.ep.ep, (DAT_IA_ADDRESS_PTR)&address, scene.port, DT_WAIT_US,
			     sizeof(request_data), (DAT_PVOID)(uintptr_t)request_data,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

/* The private data of a request of ours, behind its header (IWCM-11). */
static void check_request(void)
{
	struct cm_request request;

	assert_int_equal(
		cm_get_request(scene.plain.private_data, scene.plain.private_size, 256, &request),
		1);
	assert_int_equal(request.size, sizeof(request_data));
	assert_memory_equal(request.data, request_data, sizeof(request_data));
	assert_true(request.qual == scene.port);
}

/* We are the initiator. */
static void call_plain(void)
{
	DAT_EVENT event;
	const DAT_CONNECTION_EVENT_DATA *data = &event.event_data.connect_event_data;

	start_attempt();
	plain_take_request(&scene.plain);
	check_request();
	plain_recv(&scene.plain, AT_RECV, SIZES_END);
	plain_accept(&scene.plain, reply_data, sizeof(reply_data));
	plain_expect_event(&scene.plain, RDMA_CM_EVENT_ESTABLISHED);
	event = dt_expect_conn(scene.ep.conn, scene.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_true(data->private_data_size >= (DAT_COUNT)sizeof(reply_data));
	assert_memory_equal(data->private_data, reply_data, sizeof(reply_data));
}

/* We are the responder, and the plain side has sent nothing yet. */
static void be_called(void)
{
	DAT_CR_HANDLE cr;
	DAT_CR_PARAM param;

	plain_connect(&scene.plain, (uint16_t)scene.listener.qual, request_data,
		      sizeof(request_data));
	cr = dt_request(&scene.listener);
	param = conn_cr_query(cr);
	assert_int_equal(param.private_data_size, sizeof(request_data));
	assert_memory_equal(param.private_data, request_data, sizeof(request_data));
	plain_recv(&scene.plain, AT_RECV, SIZES_END);
	dt_ok(dat_cr_accept(cr, scene.ep.ep, sizeof(reply_data), (DAT_PVOID)(uintptr_t)reply_data));
	plain_expect_event(&scene.plain, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(scene.plain.private_size, sizeof(reply_data));
	assert_memory_equal(scene.plain.private_data, reply_data, sizeof(reply_data));
	dt_expect_conn(scene.ep.conn, scene.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void connect_as(bool is_active)
{
	if (is_active)
		call_plain();
	else
		be_called();
}

/* --- transfers --- */

/* The plain side sends, and we receive. */
static void plain_to_us(uint32_t size, uint32_t seed, bool is_solicited)
{
	post_recv(&scene.ep, dt_seg(&scene.buf, AT_RECV, SIZES_END), 1);
	dt_fill(scene.plain.memory + AT_SEND, size, seed);
	plain_send(&scene.plain, AT_SEND, size, is_solicited);
	dt_expect_dto(scene.ep.recv, scene.ep.ep, 1, DAT_DTO_SUCCESS, size);
	dt_check_pattern(scene.buf.p + AT_RECV, size, seed);
	plain_expect(&scene.plain, IBV_WC_SUCCESS);
}

/* We send; the plain side has a Receive posted, and posts another one. */
static void us_to_plain(uint32_t size, uint32_t seed)
{
	dt_fill(scene.buf.p + AT_SEND, size, seed);
	post_send(&scene.ep, dt_seg(&scene.buf, AT_SEND, size), 2, 0);
	plain_expect(&scene.plain, IBV_WC_SUCCESS);
	dt_check_pattern(scene.plain.memory + AT_RECV, size, seed);
	dt_expect_dto(scene.ep.request, scene.ep.ep, 2, DAT_DTO_SUCCESS, size);
	plain_recv(&scene.plain, AT_RECV, SIZES_END);
}

static DAT_RMR_TRIPLET at_plain(size_t at, uint32_t size)
{
	return (DAT_RMR_TRIPLET){.rmr_context = scene.plain.mr->rkey,
				 .target_address = (uintptr_t)scene.plain.memory + at,
				 .segment_length = size};
}

static void we_write(uint32_t size, uint32_t seed)
{
	DAT_LMR_TRIPLET local = dt_seg(&scene.buf, AT_SEND, size);
	DAT_RMR_TRIPLET remote = at_plain(AT_SEND, size);

	dt_fill(scene.buf.p + AT_SEND, size, seed);
	dt_ok(dat_ep_post_rdma_write(scene.ep.ep, 1, &local, dt_cookie(3), &remote, 0));
	dt_expect_dto(scene.ep.request, scene.ep.ep, 3, DAT_DTO_SUCCESS, size);
	dt_check_pattern(scene.plain.memory + AT_SEND, size, seed);
}

static void we_read(uint32_t size, uint32_t seed)
{
	DAT_LMR_TRIPLET local = dt_seg(&scene.buf, AT_SEND, size);
	DAT_RMR_TRIPLET remote = at_plain(AT_SEND, size);

	dt_fill(scene.plain.memory + AT_SEND, size, seed);
	dt_ok(dat_ep_post_rdma_read(scene.ep.ep, 1, &local, dt_cookie(4), &remote, 0));
	dt_expect_dto(scene.ep.request, scene.ep.ep, 4, DAT_DTO_SUCCESS, size);
	dt_check_pattern(scene.buf.p + AT_SEND, size, seed);
}

static void plain_writes(uint32_t size, uint32_t seed)
{
	dt_fill(scene.plain.memory + AT_SEND, size, seed);
	plain_write(&scene.plain, AT_SEND, size, scene.buf.rkey, (uintptr_t)scene.buf.p + AT_SEND);
	plain_expect(&scene.plain, IBV_WC_SUCCESS);
	/* it has completed at the plain side before it is placed here, but a Send comes behind */
	plain_to_us(1, seed, false);
	dt_check_pattern(scene.buf.p + AT_SEND, size, seed);
}

static void plain_reads(uint32_t size, uint32_t seed)
{
	dt_fill(scene.buf.p + AT_SEND, size, seed);
	plain_read(&scene.plain, AT_SEND, size, scene.buf.rkey, (uintptr_t)scene.buf.p + AT_SEND);
	plain_expect(&scene.plain, IBV_WC_SUCCESS);
	dt_check_pattern(scene.plain.memory + AT_SEND, size, seed);
}

/* RDMAP-12 IWCM-48 IWCM-17 IWCM-19: data and events, in both roles and directions */
static void transfers(bool is_active)
{
	static const uint32_t sizes[] = {1, 17, 1400, 4096, SIZES_END};
	uint32_t seed = 1;

	connect_as(is_active);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		plain_to_us(sizes[i], seed++, i & 1);
		us_to_plain(sizes[i], seed++);
		plain_writes(sizes[i], seed++);
		we_write(sizes[i], seed++);
		plain_reads(sizes[i], seed++);
		we_read(sizes[i], seed++);
	}
}

static void siw__as_responder__all_transfers(void **state)
{
	(void)state;
	transfers(true);
}

static void siw__as_initiator__all_transfers(void **state)
{
	(void)state;
	transfers(false);
}

/* --- the end --- */

/* IWCM-48: by either side */
static void disconnects(bool is_active, bool is_ours)
{
	connect_as(is_active);
	plain_to_us(4, 1, false);
	if (is_ours)
		dt_ok(dat_ep_disconnect(scene.ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	else
		plain_disconnect(&scene.plain);
	plain_expect_event(&scene.plain, RDMA_CM_EVENT_DISCONNECTED);
	plain_expect(&scene.plain, IBV_WC_WR_FLUSH_ERR);
	dt_expect_conn(scene.ep.conn, scene.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	plain_end(&scene.plain);
	dt_ok(dat_ep_reset(scene.ep.ep));
}

static void siw__disconnect__both_sides_learn_of_it(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		disconnects(i & 1, i & 2);
}

/* IWCM-23: as responder, and as initiator (IWCM-21) */
static void siw__reject__the_other_side_learns_of_it(void **state)
{
	(void)state;
	start_attempt();
	plain_take_request(&scene.plain);
	plain_reject(&scene.plain, "no", 2);
	dt_expect_conn(scene.ep.conn, scene.ep.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	plain_end(&scene.plain);
	dt_ok(dat_ep_reset(scene.ep.ep));
	plain_connect(&scene.plain, (uint16_t)scene.listener.qual, "hello", 5);
	dt_ok(dat_cr_reject(dt_request(&scene.listener)));
	plain_expect_event(&scene.plain, RDMA_CM_EVENT_REJECTED);
}

/* --- access that is refused --- */

static void expect_refused(uint64_t cookie)
{
	DAT_EVENT event = dt_event(scene.ep.request);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_true(dto->user_cookie.as_64 == cookie);
	assert_int_equal(dto->status, DAT_DTO_ERR_REMOTE_ACCESS);
	dt_expect_conn(scene.ep.conn, scene.ep.ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* IWCM-49 LMR-USE-13: siw refuses our access, by its key or its range */
static void siw__refuses_us(bool is_active, bool is_read, bool is_range)
{
	DAT_LMR_TRIPLET local = dt_seg(&scene.buf, 0, 64);
	DAT_RMR_TRIPLET remote;

	connect_as(is_active);
	plain_to_us(4, 1, false);
	remote = at_plain(is_range ? PLAIN_ROOM - 32 : 0, 64);
	if (!is_range)
		remote.rmr_context ^= 0x00ff0000;
	if (is_read)
		dt_ok(dat_ep_post_rdma_read(scene.ep.ep, 1, &local, dt_cookie(9), &remote, 0));
	else
		dt_ok(dat_ep_post_rdma_write(scene.ep.ep, 1, &local, dt_cookie(9), &remote, 0));
	expect_refused(9);
	plain_end(&scene.plain);
	dt_ok(dat_ep_reset(scene.ep.ep));
}

/* IWCM-49: we refuse siw's access: an error or a flush, and the end on both sides */
static void siw__is_refused(bool is_active, bool is_read, bool is_range)
{
	uint32_t key = is_range ? scene.buf.rkey : scene.buf.rkey ^ 0xfffc0000;
	uint64_t address = (uintptr_t)scene.buf.p + (is_range ? PLAIN_ROOM - 32 : 0);
	enum ibv_wc_status status;

	connect_as(is_active);
	plain_to_us(4, 1, false);
	memset(scene.buf.p + PLAIN_ROOM - 64, 0x55, 64);
	if (is_read)
		plain_read(&scene.plain, AT_SEND, 64, key, address);
	else
		plain_write(&scene.plain, AT_SEND, 64, key, address);
	status = plain_completion(&scene.plain);
	assert_true(status != IBV_WC_SUCCESS || !is_read);
	dt_expect_conn(scene.ep.conn, scene.ep.ep, DAT_CONNECTION_EVENT_BROKEN);
	plain_expect_event(&scene.plain, RDMA_CM_EVENT_DISCONNECTED);
	dt_check_bytes(scene.buf.p + PLAIN_ROOM - 64, 64, 0x55);
	plain_end(&scene.plain);
	dt_ok(dat_ep_reset(scene.ep.ep));
}

static void siw__bad_access__refused_in_both_directions(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		siw__refuses_us(i & 1, i & 2, i & 4);
		siw__is_refused(i & 1, i & 2, i & 4);
	}
}

/* IWCM-52: what siw overlooks is sent again; a Send at once after the set-up arrives, too */
static void siw__many_connections__all_established_and_usable(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 60; i++) {
		call_plain();
		us_to_plain(16, i);
		dt_ok(dat_ep_disconnect(scene.ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
		dt_expect_conn(scene.ep.conn, scene.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		plain_expect_event(&scene.plain, RDMA_CM_EVENT_DISCONNECTED);
		plain_end(&scene.plain);
		dt_ok(dat_ep_reset(scene.ep.ep));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(siw__as_responder__all_transfers),
		TEST(siw__as_initiator__all_transfers),
		TEST(siw__disconnect__both_sides_learn_of_it),
		TEST(siw__reject__the_other_side_learns_of_it),
		TEST(siw__bad_access__refused_in_both_directions),
		TEST(siw__many_connections__all_established_and_usable),
	};

	return cmocka_run_group_tests_name("siw", tests, NULL, NULL);
}
