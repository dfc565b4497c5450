// SPDX-License-Identifier: BSD-2-Clause
/*
 * IWCM-50: the TCP engine against rping over siw, in both roles. In each round the client names
 * bytes that the server reads, and then a place to which the server writes them. 200 rounds, or
 * with FOREIGN_ALL 10,000.
 */
#include "foreign.h"

#include <endian.h>
#include <stdlib.h>

#define BYTES 64u
#define READ_AT 0u
#define WRITE_AT 4096u

/* The message of a client; the server answers each with as many bytes, which mean nothing. */
struct info {
	uint64_t address; /* all in network byte order */
	uint32_t key;
	uint32_t size;
};

static struct scene {
	struct foreign foreign;
	struct foreign_link link;
	struct dt_buf buf;
} scene;

static const char *rounds_text(void)
{
	return getenv("FOREIGN_ALL") ? "10000" : "200";
}

static uint32_t rounds(void)
{
	return (uint32_t)strtoul(rounds_text(), NULL, 10);
}

static int open_scene(void **state)
{
	(void)state;
	foreign_open(&scene.foreign, "byte");
	foreign_prepare(&scene.foreign, &scene.link);
	dt_buf_create(&scene.foreign.ia, scene.foreign.ia.pz, &scene.buf, 2 * WRITE_AT,
		      DAT_MEM_PRIV_ALL_FLAG);
	return 0;
}

static int close_scene(void **state)
{
	(void)state;
	foreign_close(&scene.foreign);
	dt_mem_free(scene.buf.p, scene.buf.mapped);
	dt_mem_free(scene.link.messages.p, scene.link.messages.mapped);
	return 0;
}

/* --- as server --- */

static DAT_RMR_TRIPLET take_info(struct info *info)
{
	foreign_take_all(&scene.link, (uint8_t *)info, sizeof(*info));
	assert_int_equal(be32toh(info->size), BYTES);
	return (DAT_RMR_TRIPLET){.rmr_context = be32toh(info->key),
				 .target_address = be64toh(info->address),
				 .segment_length = BYTES};
}

static void serve_round(uint32_t round)
{
	DAT_LMR_TRIPLET local = dt_seg(&scene.buf, READ_AT, BYTES);
	struct info info;
	char start[32];

	memset(scene.buf.p, 0, BYTES);
	post_read(&scene.link.ep, local, take_info(&info), 1, 0);
	dt_expect_dto(scene.link.ep.request, scene.link.ep.ep, 1, DAT_DTO_SUCCESS, BYTES);
	snprintf(start, sizeof(start), "rdma-ping-%u: ", round);
	assert_memory_equal(scene.buf.p, start, strlen(start));
	assert_int_equal(strlen((char *)scene.buf.p), BYTES - 1);
	foreign_give(&scene.link, &info, sizeof(info));
	post_write(&scene.link.ep, local, take_info(&info), 2, 0);
	dt_expect_dto(scene.link.ep.request, scene.link.ep.ep, 2, DAT_DTO_SUCCESS, BYTES);
	foreign_give(&scene.link, &info, sizeof(info));
}

/* rping -V compares what comes back with what it has offered. */
static void rping__as_client__all_rounds_verified(void **state)
{
	char port[8];
	const char *const arguments[] = {"rping", "-c", "-a", FOREIGN_ADDRESS, "-p",
					 port,	  "-V", "-C", rounds_text(),   NULL};

	(void)state;
	snprintf(port, sizeof(port), "%u", (unsigned)scene.foreign.listener.qual);
	foreign_start(&scene.foreign, arguments);
	foreign_accept(&scene.foreign, &scene.link);
	for (uint32_t round = 0; round < rounds(); round++)
		serve_round(round);
	dt_expect_conn(scene.link.ep.conn, scene.link.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	foreign_join(&scene.foreign);
}

/* --- as client --- */

/* Offers the bytes at that offset, and waits until the server has used them. */
static void offer(size_t at)
{
	struct info info = {.address = htobe64((uintptr_t)scene.buf.p + at),
			    .key = htobe32(scene.buf.rkey),
			    .size = htobe32(BYTES)};

	foreign_give(&scene.link, &info, sizeof(info));
	foreign_take_all(&scene.link, (uint8_t *)&info, sizeof(info));
}

/* rping writes back what it has read up to the first zero. */
static void ask_round(uint32_t round)
{
	for (uint32_t i = 0; i < BYTES - 1; i++)
		scene.buf.p[READ_AT + i] = (uint8_t)(1 + (round + i) % 255);
	memset(scene.buf.p + WRITE_AT, 0, BYTES);
	offer(READ_AT);
	offer(WRITE_AT);
	assert_memory_equal(scene.buf.p + READ_AT, scene.buf.p + WRITE_AT, BYTES);
}

static void rping__as_server__all_rounds_verified(void **state)
{
	char port[8];
	const char *const arguments[] = {"rping", "-s", "-a", FOREIGN_ADDRESS, "-p", port, NULL};

	(void)state;
	foreign_choose_port(port);
	foreign_start(&scene.foreign, arguments);
	foreign_connect(&scene.link.ep, port);
	foreign_post_receives(&scene.link);
	for (uint32_t round = 0; round < rounds(); round++)
		ask_round(round);
	dt_ok(dat_ep_disconnect(scene.link.ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(scene.link.ep.conn, scene.link.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	foreign_join(&scene.foreign);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rping__as_client__all_rounds_verified),
		TEST(rping__as_server__all_rounds_verified),
	};

	return cmocka_run_group_tests_name("rping", tests, NULL, NULL);
}
