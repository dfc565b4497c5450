// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a connection leaves to the next one (connect/keep.c): both sides together, and the passive
 * side with peers that the test plays.
 */
#include <dirent.h>

#include "keep_peer.h"
#include "keep_stage.h"

static void set_up(void)
{
	connect_to(stage.qual);
	accept_request();
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void end(DAT_EP_HANDLE ep)
{
	ok(core_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.a));
	ok(core_ep_reset(stage.b));
}

static void send_one(DAT_EP_HANDLE from, DAT_EP_HANDLE to, uint8_t byte)
{
	DAT_LMR_TRIPLET source = {stage.lkey, 0, (uintptr_t)stage.memory, LENGTH};
	DAT_LMR_TRIPLET target = {stage.lkey, 0, (uintptr_t)stage.memory + LENGTH, LENGTH};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	memset(stage.memory, byte, LENGTH);
	ok(core_ep_post_recv(to, 1, &target, cookie, 0));
	ok(core_ep_post_send(from, 1, &source, cookie, 0));
	for (int i = 0; i < 2; i++) {
		DAT_EVENT event = next_of(stage.evd);

		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_SUCCESS);
	}
	assert_memory_equal(stage.memory, stage.memory + LENGTH, LENGTH);
}

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void expect_descriptors(int count)
{
	for (int i = 0; i < 200 && open_descriptors() != count; i++)
		poll(NULL, 0, 10);
	assert_int_equal(open_descriptors(), count);
}

/* The same, and ends the connection. */
static void peer_has_been_here(struct peer *peer)
{
	peer_is_here(peer);
	peer_word(peer, SHM_WIRE_CLOSE, SHM_WHY_DISCONNECT);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.b));
}

/* --- the two sides together --- */

static void connect__again_and_again__bytes_move_both_ways(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		set_up();
		/* the rings end at a different place each time, some after their first lap */
		for (int j = 0; j < i * 8; j++)
			send_one(stage.a, stage.b, (uint8_t)(i + j));
		send_one(stage.b, stage.a, (uint8_t)i);
		end(i & 1 ? stage.a : stage.b);
	}
}

static void connect__again__takes_the_socket_of_the_last_one(void **state)
{
	int descriptors = open_descriptors();

	(void)state;
	set_up();
	for (int i = 0; i < 20; i++) {
		end(stage.a);
		set_up();
	}
	/* the two sockets; some more if IDLE was late */
	assert_in_range(open_descriptors(), descriptors + 2, descriptors + 10);
	end(stage.a);
	expect_descriptors(descriptors);
}

static void connect__service_point_gone__rejected_and_found_when_it_is_back(void **state)
{
	(void)state;
	set_up();
	end(stage.a);
	ok(core_psp_free(stage.psp));
	connect_to(stage.qual);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	ok(core_ep_reset(stage.a));
	for (int i = 0; i < 2; i++) { /* the second time, the kept one of the first time is used */
		ok(core_psp_create(stage.ia, stage.qual, stage.request_evd, DAT_PSP_CONSUMER_FLAG,
				   &stage.psp));
		set_up();
		end(stage.a);
		ok(core_psp_free(stage.psp));
	}
}

/* --- the passive side --- */

static void peer__asks_again__segment_is_as_new(void **state)
{
	struct peer peer;

	(void)state;
	peer_has_been_here(&peer);
	assert_int_equal(peer_receive(&peer), SHM_WIRE_IDLE);
	assert_int_equal(peer.segment->side[SHM_PASSIVE].revoked, 1);
	/* its late packets belong to the earlier connection */
	peer_word(&peer, SHM_WIRE_WAKE, 0);
	peer_word(&peer, SHM_WIRE_KEY_GONE, 5);
	memset(peer.segment->side, 0, sizeof(peer.segment->side));
	peer_ask(&peer, SHM_WIRE_REQUEST_KEPT, NULL);
	accept_request();
	assert_int_equal(peer_receive(&peer), SHM_WIRE_ACCEPT_KEPT);
	peer_word(&peer, SHM_WIRE_READY, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(peer.segment->side[SHM_PASSIVE].revoked, 0);
	peer_close(&peer);
	expect(DAT_CONNECTION_EVENT_BROKEN);
}

/* It leaves all words and rings as they are, or worse. */
static void peer__asks_again_in_a_dirty_segment__breaks_its_own_connection(void **state)
{
	struct peer peer;

	(void)state;
	peer_has_been_here(&peer);
	assert_int_equal(peer_receive(&peer), SHM_WIRE_IDLE);
	memset(peer.segment, 0x5a, sizeof(*peer.segment));
	peer_ask(&peer, SHM_WIRE_REQUEST_KEPT, NULL);
	accept_request();
	assert_int_equal(peer_receive(&peer), SHM_WIRE_ACCEPT_KEPT);
	peer_word(&peer, SHM_WIRE_READY, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	peer_close(&peer);
}

static void peer__asks_with_descriptors_or_nonsense__dropped(void **state)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int descriptors;

	(void)state;
	descriptors = open_descriptors();
	for (unsigned i = 0; i < 4; i++) {
		int fds[2] = {null, null};
		struct peer peer;

		peer_has_been_here(&peer);
		assert_int_equal(peer_receive(&peer), SHM_WIRE_IDLE);
		if (i == 0)
			assert_true(send(peer.fd, "nonsense", 8, MSG_NOSIGNAL) == 8);
		else if (i == 1)
			shutdown(peer.fd, SHUT_WR);
		else if (i == 2)
			peer_ask(&peer, SHM_WIRE_REQUEST, fds);
		else /* ignored as a late packet */
			peer_ask(&peer, SHM_WIRE_REQUEST, NULL);
		if (i < 3)
			assert_int_equal(peer_receive(&peer), 0);
		peer_close(&peer);
		expect_descriptors(descriptors);
	}
	close(null);
}

static void peer__many_that_ask_no_more__few_are_kept(void **state)
{
	struct peer peers[24];
	unsigned kept = 0;

	(void)state;
	for (unsigned i = 0; i < 24; i++) {
		peer_has_been_here(&peers[i]);
		kept += peer_receive(&peers[i]) == SHM_WIRE_IDLE;
	}
	assert_int_equal(kept, 16);
	for (unsigned i = 0; i < 24; i++)
		peer_close(&peers[i]);
}

/* No request is sent on it if another process has the service point by then. */
static void peer__kept_when_the_service_point_goes__its_socket_ends(void **state)
{
	struct peer peer;

	(void)state;
	peer_has_been_here(&peer);
	assert_int_equal(peer_receive(&peer), SHM_WIRE_IDLE);
	ok(core_psp_free(stage.psp));
	assert_int_equal(peer_receive(&peer), 0);
	peer_close(&peer);
}

static void peer__asks_no_more__not_kept_for_ever(void **state)
{
	struct peer peer;

	(void)state;
	peer_has_been_here(&peer);
	assert_int_equal(peer_receive(&peer), SHM_WIRE_IDLE);
	assert_int_equal(peer_receive(&peer), 0);
	peer_close(&peer);
}

/* CR-ACCEPT-19: the reply could not be sent, and what the peer has sent before changes nothing */
static void accept__peer_takes_no_reply_but_says_ready__fails(void **state)
{
	struct peer peer;

	(void)state;
	peer_dial(&peer);
	peer_ask(&peer, SHM_WIRE_REQUEST, NULL);
	peer_word(&peer, SHM_WIRE_READY, SHM_ABLE_TRUST);
	assert_int_equal(shutdown(peer.fd, SHUT_RD), 0);
	accept_request();
	expect(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	peer_close(&peer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
	const struct CMUnitTest tests[] = {
		TEST(connect__again_and_again__bytes_move_both_ways),
		TEST(connect__again__takes_the_socket_of_the_last_one),
		TEST(connect__service_point_gone__rejected_and_found_when_it_is_back),
		TEST(peer__asks_again__segment_is_as_new),
		TEST(peer__asks_again_in_a_dirty_segment__breaks_its_own_connection),
		TEST(peer__asks_with_descriptors_or_nonsense__dropped),
		TEST(peer__many_that_ask_no_more__few_are_kept),
		TEST(peer__kept_when_the_service_point_goes__its_socket_ends),
		TEST(peer__asks_no_more__not_kept_for_ever),
		TEST(accept__peer_takes_no_reply_but_says_ready__fails),
	};

	return cmocka_run_group_tests_name("shm keep", tests, provide, NULL);
}
