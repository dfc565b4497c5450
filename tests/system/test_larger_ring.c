// SPDX-License-Identifier: BSD-2-Clause
/*
 * Streams that the first ring of a connection has no room for. The larger ring behind it replaces
 * it, in the mapping that the connection has anyway, and the data stay whole and in order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ability.h"
#include "conf.h"
#include "conn_util.h"
#include "soft/shm/bytes/segment.h"

#define LEN 2000u /* of one entry; 16 of them do not fit into the first ring */
#define WINDOW 16u
#define LONGEST 300007u /* bytes: more than the larger ring holds */
#define ROUNDS (DT_SLOW ? 10u : 50u)

/* --- what the kernel says --- */

/* The memory of connections that is mapped here. */
struct mapped {
	unsigned count;
	unsigned large; /* those of which this process uses so much as only a larger ring takes */
};

static struct mapped find_mapped(void)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	struct mapped mapped = {0};
	unsigned long from, to, kib;
	bool is_ours = false;
	char line[512];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			is_ours = strstr(line, "opendat-conn");
			mapped.count += is_ours;
			if (is_ours)
				assert_int_equal(to - from, sizeof(struct shm_segment));
		} else if (is_ours && sscanf(line, "Rss: %lu", &kib) == 1) {
			mapped.large += kib >= SHM_LARGE_RING / 1024;
		}
	}
	fclose(file);
	return mapped;
}

static bool has_none(void *unused)
{
	(void)unused;
	return find_mapped().count == 0;
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
		_exit(find_mapped().count != 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status == 0;
}

static bool has_usage(void)
{
	return !getenv("MESON_EXE_WRAPPER");
}

/* --- streams --- */

struct stream {
	struct dt_ep *from, *to;
	struct dt_buf out, in;
	const size_t *lengths; /* of the messages of a window */
	size_t total;
};

static const size_t equal[WINDOW] = {LEN, LEN, LEN, LEN, LEN, LEN, LEN, LEN,
				     LEN, LEN, LEN, LEN, LEN, LEN, LEN, LEN};
/* around the sizes of entries and of rings */
static const size_t mixed[WINDOW] = {1,	   4096,  4097,	 LONGEST, 64,	16384, 16385, 100000,
				     8192, 15000, 16352, 4064,	  2048, 32768, 3,     LONGEST};

static void open_stream(struct conn_fixture *f, struct stream *stream, struct dt_ep *from,
			struct dt_ep *to, const size_t *lengths)
{
	*stream = (struct stream){.from = from, .to = to, .lengths = lengths};
	for (uint32_t i = 0; i < WINDOW; i++)
		stream->total += lengths[i];
	dt_buf_create(&f->ia, f->ia.pz, &stream->out, stream->total, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&f->ia, f->ia.pz, &stream->in, stream->total, DAT_MEM_PRIV_ALL_FLAG);
}

static void close_stream(struct stream *stream)
{
	dt_buf_free(&stream->out);
	dt_buf_free(&stream->in);
}

/* A window of messages, all posted before the first one is taken. */
static void post_window(struct stream *stream, uint32_t seed)
{
	size_t at = 0;

	dt_fill(stream->out.p, stream->total, seed);
	memset(stream->in.p, 0, stream->total);
	for (uint32_t i = 0; i < WINDOW; at += stream->lengths[i++]) {
		DAT_LMR_TRIPLET in = dt_seg(&stream->in, at, stream->lengths[i]);

		dt_ok(dat_ep_post_recv(stream->to->ep, 1, &in, dt_cookie(i), 0));
	}
	at = 0;
	for (uint32_t i = 0; i < WINDOW; at += stream->lengths[i++]) {
		DAT_LMR_TRIPLET out = dt_seg(&stream->out, at, stream->lengths[i]);

		dt_ok(dat_ep_post_send(stream->from->ep, 1, &out, dt_cookie(i), 0));
	}
}

/* By polls: for a thread that sleeps, the sender would place messages without the ring. */
static void take_one(DAT_EVD_HANDLE evd, uint64_t cookie, size_t len)
{
	const DAT_EVENT event = dt_event_poll(evd);
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(data->status, DAT_DTO_SUCCESS);
	assert_int_equal(data->user_cookie.as_64, cookie);
	assert_int_equal(data->transfered_length, len);
}

static void take_window(struct stream *stream, uint32_t seed)
{
	for (uint32_t i = 0; i < WINDOW; i++) {
		take_one(stream->to->recv, i, stream->lengths[i]);
		take_one(stream->from->request, i, stream->lengths[i]);
	}
	dt_check_pattern(stream->in.p, stream->total, seed);
}

/* Until one end uses a larger ring: soon, unless others keep the processors. */
static void run_until_large(struct stream *stream)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;

	for (uint32_t round = 0; find_mapped().large == 0; round++) {
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
 * GEN-34 DTO-34 DTO-07: in one direction, then in both; the next connection begins with the first
 * ring again
 */
static void stream__more_than_the_ring_holds__larger_ring_and_data_whole(void **state)
{
	struct conn_fixture *f = *state;
	struct stream there, back;

	ABILITY_NEED(has_usage(), "an emulator does not say how much memory is used");
	open_stream(f, &there, &f->a, &f->b, equal);
	open_stream(f, &back, &f->b, &f->a, equal);
	for (unsigned connection = 0; connection < 3; connection++) {
		conn_link(f, &f->a, &f->b);
		assert_int_equal(find_mapped().large, 0);
		run_until_large(&there);
		run_both(&there, &back);
		assert_int_equal(find_mapped().count, 2);
		if (ability_dontfork())
			assert_true(is_child_clean());
		end_connection(f);
		dt_until(has_none, NULL);
	}
	close_stream(&there);
	close_stream(&back);
}

/* DTO-34 DTO-07: messages of all lengths, while the rings change and later */
static void stream__messages_of_all_lengths__data_whole(void **state)
{
	struct conn_fixture *f = *state;
	struct stream there, back;

	conn_link(f, &f->a, &f->b);
	open_stream(f, &there, &f->a, &f->b, mixed);
	open_stream(f, &back, &f->b, &f->a, mixed);
	run_both(&there, &back);
	if (has_usage())
		assert_int_equal(find_mapped().large, 2);
	assert_int_equal(find_mapped().count, 2);
	close_stream(&there);
	close_stream(&back);
}

/* A window of RDMA Reads of the other end's buffer, and one of Writes to it. */
static void rdma_window(struct stream *stream, bool is_read, uint32_t seed)
{
	const struct dt_buf *near = is_read ? &stream->in : &stream->out;
	const struct dt_buf *far = is_read ? &stream->out : &stream->in;
	size_t at = 0;

	dt_fill(stream->out.p, stream->total, seed);
	memset(stream->in.p, 0, stream->total);
	for (uint32_t i = 0; i < WINDOW; at += stream->lengths[i++]) {
		DAT_LMR_TRIPLET local = dt_seg(near, at, stream->lengths[i]);
		DAT_RMR_TRIPLET remote = dt_rseg(far, at, stream->lengths[i]);

		if (is_read)
			dt_ok(dat_ep_post_rdma_read(stream->from->ep, 1, &local, dt_cookie(i),
						    &remote, 0));
		else
			dt_ok(dat_ep_post_rdma_write(stream->from->ep, 1, &local, dt_cookie(i),
						     &remote, 0));
	}
	for (uint32_t i = 0; i < WINDOW; i++)
		take_one(stream->from->request, i, stream->lengths[i]);
	dt_check_pattern(stream->in.p, stream->total, seed);
}

/* EP-RDMAW-01 EP-RDMAR-01 DTO-07: answers have a ring of their own, which changes likewise */
static void rdma__more_than_the_rings_hold__data_whole(void **state)
{
	struct conn_fixture *f = *state;
	struct stream stream;

	conn_link(f, &f->a, &f->b);
	open_stream(f, &stream, &f->a, &f->b, mixed);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		rdma_window(&stream, true, round);
		rdma_window(&stream, false, ~round);
	}
	assert_int_equal(find_mapped().count, 2);
	close_stream(&stream);
}

/* One message at a time fits, however many there are. */
static void exchange__each_message_fits__first_ring(void **state)
{
	struct conn_fixture *f = *state;
	struct stream there;

	conn_link(f, &f->a, &f->b);
	open_stream(f, &there, &f->a, &f->b, equal);
	for (uint32_t i = 0; i < ROUNDS * WINDOW; i++) {
		DAT_LMR_TRIPLET out = dt_seg(&there.out, 0, LEN), in = dt_seg(&there.in, 0, LEN);

		dt_ok(dat_ep_post_recv(f->b.ep, 1, &in, dt_cookie(1), 0));
		dt_ok(dat_ep_post_send(f->a.ep, 1, &out, dt_cookie(2), 0));
		dt_expect_dto(f->b.recv, f->b.ep, 1, DAT_DTO_SUCCESS, LEN);
		dt_expect_dto(f->a.request, f->a.ep, 2, DAT_DTO_SUCCESS, LEN);
	}
	assert_int_equal(find_mapped().large, 0);
	close_stream(&there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(stream__more_than_the_ring_holds__larger_ring_and_data_whole),
		conn_test(stream__messages_of_all_lengths__data_whole),
		conn_test(rdma__more_than_the_rings_hold__data_whole),
		conn_test(exchange__each_message_fits__first_ring),
	};

	return cmocka_run_group_tests_name("larger_ring", tests, NULL, NULL);
}
