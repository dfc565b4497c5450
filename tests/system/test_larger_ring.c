// SPDX-License-Identifier: BSD-2-Clause
/*
 * Streams of messages that the ring of a connection has no room for. The connection gets a larger
 * ring, and the data stay whole and in order.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "ability.h"
#include "conf.h"
#include "conn_util.h"

#define LEN 2000u /* too small to be fetched, and 16 of them do not fit into the first ring */
#define WINDOW 16u
#define SMALL 65536 /* bytes of a file that holds a connection without them */
#define ROUNDS (DT_SLOW ? 10u : 50u)

/* Mappings of the files of connections that contain larger rings. */
static unsigned count_large(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	unsigned count = 0;
	char line[512];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, "opendat-conn") && sscanf(line, "%lx-%lx", &from, &to) == 2 &&
			 to - from > 256 * 1024;
	fclose(file);
	return count;
}

static bool has_no_large(void *unused)
{
	(void)unused;
	return count_large() == 0;
}

struct stream {
	struct dt_ep *from, *to;
	struct dt_buf out, in;
};

static void open_stream(struct conn_fixture *f, struct stream *stream, struct dt_ep *from,
			struct dt_ep *to)
{
	*stream = (struct stream){.from = from, .to = to};
	dt_buf_create(&f->ia, f->ia.pz, &stream->out, (size_t)WINDOW * LEN, CONF_LOCAL);
	dt_buf_create(&f->ia, f->ia.pz, &stream->in, (size_t)WINDOW * LEN, CONF_LOCAL);
}

/* A window of messages, all posted before the first one is taken. */
static void post_window(struct stream *stream, uint32_t seed)
{
	dt_fill(stream->out.p, (size_t)WINDOW * LEN, seed);
	memset(stream->in.p, 0, (size_t)WINDOW * LEN);
	for (uint32_t i = 0; i < WINDOW; i++) {
		DAT_LMR_TRIPLET in = dt_seg(&stream->in, (size_t)i * LEN, LEN);

		dt_ok(dat_ep_post_recv(stream->to->ep, 1, &in, dt_cookie(i), 0));
	}
	for (uint32_t i = 0; i < WINDOW; i++) {
		DAT_LMR_TRIPLET out = dt_seg(&stream->out, (size_t)i * LEN, LEN);

		dt_ok(dat_ep_post_send(stream->from->ep, 1, &out, dt_cookie(i), 0));
	}
}

/* By polls: for a thread that sleeps, the sender would place messages without the ring. */
static void take_one(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	const DAT_EVENT event = dt_event_poll(evd);
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(data->status, DAT_DTO_SUCCESS);
	assert_int_equal(data->user_cookie.as_64, cookie);
	assert_int_equal(data->transfered_length, LEN);
}

static void take_window(struct stream *stream, uint32_t seed)
{
	for (uint32_t i = 0; i < WINDOW; i++) {
		take_one(stream->to->recv, i);
		take_one(stream->from->request, i);
	}
	dt_check_pattern(stream->in.p, (size_t)WINDOW * LEN, seed);
}

static void close_stream(struct stream *stream)
{
	dt_buf_free(&stream->out);
	dt_buf_free(&stream->in);
}

/* Has a child of a fork none of those mappings (GEN-34)? */
static bool is_child_clean(void)
{
	int status = -1;
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_int_not_equal(child, -1);
	if (!child)
		_exit(count_large() != 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status == 0;
}

/* Until both ends have mapped the larger rings: soon, unless others keep the processors. */
static void run_until_large(struct stream *stream)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;

	for (uint32_t round = 0; count_large() < 2; round++) {
		assert_true(dt_now_us() < end);
		post_window(stream, round);
		take_window(stream, round);
	}
}

static void run_both(struct stream *there, struct stream *back)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		post_window(there, round);
		post_window(back, ~round);
		take_window(there, round);
		take_window(back, ~round);
	}
}

/* Ends the connection, and makes new endpoints. */
static void end_connection(struct conn_fixture *f)
{
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ep_free(&f->a);
	dt_ep_free(&f->b);
	dt_ep_create(&f->ia, f->ia.pz, NULL, &f->a);
	dt_ep_create(&f->ia, f->ia.pz, NULL, &f->b);
}

/*
 * GEN-34 DTO-34 DTO-07: in one direction, then in both; the next connection begins without, and
 * gets them again
 */
static void stream__more_than_the_ring_holds__larger_ring_and_data_whole(void **state)
{
	struct conn_fixture *f = *state;
	struct stream there, back;

	ABILITY_NEED(ability_second_mapping(), "memory cannot be mapped a second time");
	open_stream(f, &there, &f->a, &f->b);
	open_stream(f, &back, &f->b, &f->a);
	for (unsigned connection = 0; connection < 3; connection++) {
		conn_link(f, &f->a, &f->b);
		run_until_large(&there);
		run_both(&there, &back);
		assert_int_equal(count_large(), 2);
		if (ability_dontfork())
			assert_true(is_child_clean());
		end_connection(f);
		dt_until(has_no_large, NULL);
	}
	close_stream(&there);
	close_stream(&back);
}

/* Files have no room for larger rings: neither for this connection nor for the next one. */
static void stream__small_files_only__first_ring_and_data_whole(void **state)
{
	struct conn_fixture *f = *state;
	struct stream there;

	open_stream(f, &there, &f->a, &f->b);
	for (unsigned connection = 0; connection < 2; connection++) {
		const struct rlimit old = conn_files_limit(SMALL);

		conn_link(f, &f->a, &f->b);
		conn_files_free(&old);
		for (uint32_t round = 0; round < 50; round++) {
			post_window(&there, round);
			take_window(&there, round);
		}
		assert_int_equal(count_large(), 0);
		end_connection(f);
	}
	close_stream(&there);
}

/* One message at a time fits, however many there are. */
static void exchange__each_message_fits__first_ring(void **state)
{
	struct conn_fixture *f = *state;
	struct stream there;

	conn_link(f, &f->a, &f->b);
	open_stream(f, &there, &f->a, &f->b);
	for (uint32_t i = 0; i < ROUNDS * WINDOW; i++) {
		DAT_LMR_TRIPLET out = dt_seg(&there.out, 0, LEN), in = dt_seg(&there.in, 0, LEN);

		dt_ok(dat_ep_post_recv(f->b.ep, 1, &in, dt_cookie(1), 0));
		dt_ok(dat_ep_post_send(f->a.ep, 1, &out, dt_cookie(2), 0));
		dt_expect_dto(f->b.recv, f->b.ep, 1, DAT_DTO_SUCCESS, LEN);
		dt_expect_dto(f->a.request, f->a.ep, 2, DAT_DTO_SUCCESS, LEN);
	}
	assert_int_equal(count_large(), 0);
	close_stream(&there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(stream__more_than_the_ring_holds__larger_ring_and_data_whole),
		conn_test(stream__small_files_only__first_ring_and_data_whole),
		conn_test(exchange__each_message_fits__first_ring),
	};

	return cmocka_run_group_tests_name("larger_ring", tests, NULL, NULL);
}
