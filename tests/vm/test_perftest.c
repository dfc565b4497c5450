// SPDX-License-Identifier: BSD-2-Clause
/*
 * IWCM-50: the TCP engine against programs of perftest over siw, in both roles. With -R perftest
 * uses two connections to one port: one for its own messages, which the client sends and the server
 * answers, and one for the data. Two sizes, or with FOREIGN_ALL all from 2 bytes to 8 MiB.
 */
#include "foreign.h"

#include <endian.h>
#include <stdlib.h>

#define TIMES 5u /* transfers of each size, perftest's minimum */
#define TIMES_TEXT "5"
#define LARGEST (1u << 23)
#define RECV_AT LARGEST
#define ROOM (2 * LARGEST)
#define UNTOUCHED 0xa5

/* What the two sides say about themselves, and with what they wait for each other. */
struct dest {
	uint32_t lid; /* all in network byte order */
	uint32_t out_reads;
	uint32_t queue_pair;
	uint32_t psn;
	uint32_t key;
	uint32_t unused;
	uint64_t address;
	uint8_t gid[16];
	uint32_t srq;
	uint32_t gid_index;
};

/* The sizes of a run, each twice the one before, and perftest's option for them. */
struct sizes {
	uint32_t first, last;
	const char *option;
};

static struct sizes small = {8, 8, "-s8"};
static struct sizes large = {200000, 200000, "-s200000"};
static struct sizes all = {2, LARGEST, "-a"};

static struct scene {
	struct sizes sizes;
	struct foreign foreign;
	struct foreign_link control;
	struct dt_ep data;
	struct dt_buf buf;
	struct dest other;
} scene;

static int open_scene(void **state)
{
	scene.sizes = *(struct sizes *)*state;
	/* perftest's memory cannot be read in the test of Writes */
	foreign_open(&scene.foreign, "off");
	foreign_prepare(&scene.foreign, &scene.control);
	dt_ep_create(&scene.foreign.ia, scene.foreign.ia.pz, NULL, &scene.data);
	dt_buf_create(&scene.foreign.ia, scene.foreign.ia.pz, &scene.buf, ROOM,
		      DAT_MEM_PRIV_ALL_FLAG);
	memset(scene.buf.p, UNTOUCHED, ROOM);
	return 0;
}

static int close_scene(void **state)
{
	(void)state;
	foreign_close(&scene.foreign);
	dt_mem_free(scene.buf.p, scene.buf.mapped);
	dt_mem_free(scene.control.messages.p, scene.control.messages.mapped);
	return 0;
}

/* --- perftest's own messages --- */

static struct dest own_dest(void)
{
	return (struct dest){.key = htobe32(scene.buf.rkey),
			     .address = htobe64((uintptr_t)scene.buf.p)};
}

/* As server: answers messages up to the next one with a dest. Others are answered by themselves. */
static void answer(void)
{
	const struct dest own = own_dest();
	uint8_t message[FOREIGN_MESSAGE];
	size_t size;

	while ((size = foreign_take(&scene.control, message)) != sizeof(own))
		foreign_give(&scene.control, message, size);
	foreign_give(&scene.control, &own, sizeof(own));
}

/* As client: exchanges a value of that size. */
static void exchange(const void *value, size_t size)
{
	uint8_t unused[FOREIGN_MESSAGE];

	foreign_give(&scene.control, value, size);
	foreign_take_all(&scene.control, unused, size);
}

static void ask(void)
{
	const struct dest own = own_dest();

	foreign_give(&scene.control, &own, sizeof(own));
	foreign_take_all(&scene.control, (uint8_t *)&scene.other, sizeof(scene.other));
}

/* Both sides must have got ready for the connection for the data, and for each other. */
#define SYNCHRONISATIONS 4u

static void meet_client(const char *tool)
{
	char port[8];
	const char *const arguments[] = {tool,
					 "-R",
					 "-d",
					 "siw0",
					 "-p",
					 port,
					 "-F",
					 "-n",
					 TIMES_TEXT,
					 scene.sizes.option,
					 FOREIGN_ADDRESS,
					 NULL};

	snprintf(port, sizeof(port), "%u", (unsigned)scene.foreign.listener.qual);
	foreign_start(&scene.foreign, arguments);
	foreign_accept(&scene.foreign, &scene.control);
	answer();
	dt_ok(dat_cr_accept(dt_request(&scene.foreign.listener), scene.data.ep, 0, NULL));
	dt_expect_conn(scene.data.conn, scene.data.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (unsigned i = 0; i < SYNCHRONISATIONS; i++)
		answer();
}

static void meet_server(const char *tool)
{
	char port[8];
	const char *const arguments[] = {tool, "-R", "-d", "siw0",     "-p",
					 port, "-F", "-n", TIMES_TEXT, scene.sizes.option,
					 NULL};

	foreign_choose_port(port);
	foreign_start(&scene.foreign, arguments);
	foreign_connect(&scene.control.ep, port);
	foreign_post_receives(&scene.control);
	exchange("6.06\0\0\0\0\0\0\0\0\0\0\0", 16); /* perftest's version */
	exchange("\0\0\x10\0", 4);		    /* bytes of a page and of a cache line */
	exchange("\0\0\0\x40", 4);
	exchange("3", 2); /* the code of an MTU */
	ask();
	foreign_connect(&scene.data, port);
	for (unsigned i = 0; i < SYNCHRONISATIONS; i++)
		ask();
}

static void exchange_reports(void)
{
	static const uint64_t report[5] = {0};

	for (size_t i = 0; i < COUNT_OF(report); i++)
		exchange(&report[i], sizeof(report[i]));
}

/* The server ends the connection. */
static void leave(bool is_server)
{
	if (is_server)
		dt_ok(dat_ep_disconnect(scene.data.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(scene.data.conn, scene.data.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	foreign_join(&scene.foreign);
}

/* --- ib_send_lat: one message at a time, which the server sends back --- */

static void post_data_receive(void)
{
	post_recv(&scene.data, dt_seg(&scene.buf, RECV_AT, LARGEST), 1);
}

static void send_data(uint32_t size)
{
	post_send(&scene.data, dt_seg(&scene.buf, 0, size), 2, 0);
	dt_expect_dto(scene.data.request, scene.data.ep, 2, DAT_DTO_SUCCESS, size);
}

static void take_data(uint32_t size)
{
	dt_expect_dto(scene.data.recv, scene.data.ep, 1, DAT_DTO_SUCCESS, size);
}

static void ib_send_lat__as_client__transfers(void **state)
{
	(void)state;
	post_data_receive();
	meet_client("ib_send_lat");
	for (uint32_t size = scene.sizes.first; size <= scene.sizes.last; size *= 2) {
		answer();
		for (unsigned i = 0; i < TIMES; i++) {
			take_data(size);
			post_data_receive();
			send_data(size);
		}
	}
	answer();
	leave(true);
}

static void ib_send_lat__as_server__transfers(void **state)
{
	(void)state;
	meet_server("ib_send_lat");
	for (uint32_t size = scene.sizes.first; size <= scene.sizes.last; size *= 2) {
		ask();
		for (unsigned i = 0; i < TIMES; i++) {
			post_data_receive();
			send_data(size);
			take_data(size);
		}
	}
	ask();
	leave(false);
}

/* --- ib_write_bw: the client writes --- */

/* perftest's bytes are random: those of the largest size have all been written. */
static void check_written(void)
{
	uint8_t untouched[8];

	memset(untouched, UNTOUCHED, sizeof(untouched));
	for (size_t at = 0; at + sizeof(untouched) <= scene.sizes.last; at += sizeof(untouched))
		assert_memory_not_equal(scene.buf.p + at, untouched, sizeof(untouched));
	dt_check_bytes(scene.buf.p + LARGEST, LARGEST, UNTOUCHED);
}

static void ib_write_bw__as_client__transfers(void **state)
{
	(void)state;
	meet_client("ib_write_bw");
	answer();
	check_written();
	answer(); /* behind the reports */
	leave(true);
}

static DAT_RMR_TRIPLET remote_of(uint32_t size)
{
	return (DAT_RMR_TRIPLET){.rmr_context = be32toh(scene.other.key),
				 .target_address = be64toh(scene.other.address),
				 .segment_length = size};
}

static void ib_write_bw__as_server__transfers(void **state)
{
	(void)state;
	meet_server("ib_write_bw");
	for (uint32_t size = scene.sizes.first; size <= scene.sizes.last; size *= 2)
		for (unsigned i = 0; i < TIMES; i++) {
			post_write(&scene.data, dt_seg(&scene.buf, 0, size), remote_of(size), 3, 0);
			dt_expect_dto(scene.data.request, scene.data.ep, 3, DAT_DTO_SUCCESS, size);
		}
	ask();
	exchange_reports();
	ask();
	leave(false);
}

/* --- ib_read_bw: the client reads --- */

static void ib_read_bw__as_client__transfers(void **state)
{
	(void)state;
	meet_client("ib_read_bw");
	answer();
	answer(); /* behind the reports */
	leave(true);
}

/* All Reads find the same bytes. */
static void ib_read_bw__as_server__transfers(void **state)
{
	(void)state;
	meet_server("ib_read_bw");
	for (uint32_t size = scene.sizes.last; size >= scene.sizes.first; size /= 2)
		for (unsigned i = 0; i < TIMES; i++) {
			size_t at = size == scene.sizes.last ? 0 : RECV_AT;

			memset(scene.buf.p + at, UNTOUCHED, size);
			post_read(&scene.data, dt_seg(&scene.buf, at, size), remote_of(size), 4, 0);
			dt_expect_dto(scene.data.request, scene.data.ep, 4, DAT_DTO_SUCCESS, size);
			assert_memory_equal(scene.buf.p + at, scene.buf.p, size);
		}
	ask();
	exchange_reports();
	ask();
	leave(false);
}

#define TEST(name, sizes)                                                                          \
	cmocka_unit_test_prestate_setup_teardown(name, open_scene, close_scene, &(sizes))
#define TESTS(sizes)                                                                               \
	TEST(ib_send_lat__as_client__transfers, sizes),                                            \
		TEST(ib_send_lat__as_server__transfers, sizes),                                    \
		TEST(ib_write_bw__as_client__transfers, sizes),                                    \
		TEST(ib_write_bw__as_server__transfers, sizes),                                    \
		TEST(ib_read_bw__as_client__transfers, sizes),                                     \
		TEST(ib_read_bw__as_server__transfers, sizes)

int main(void)
{
	const struct CMUnitTest some_sizes[] = {TESTS(small), TESTS(large)};
	const struct CMUnitTest all_sizes[] = {TESTS(all)};

	if (getenv("FOREIGN_ALL"))
		return cmocka_run_group_tests_name("perftest", all_sizes, NULL, NULL);
	return cmocka_run_group_tests_name("perftest", some_sizes, NULL, NULL);
}
