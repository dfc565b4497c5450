// SPDX-License-Identifier: BSD-2-Clause
/* Rounds of verified transfers (stream.h). */
#include "stream.h"

#include <dat/opendat.h>

/* parts of the buffer */
enum { PART_OUT, PART_IN, PART_WRITTEN, PART_READ, PART_LOCAL, PARTS };

#define RUSH 4u /* Writes at a time */

enum { COOKIE_RECV = 1, COOKIE_SEND, COOKIE_RDMA };

/* what each transfer of a round carries */
enum { PATTERN_WRITE, PATTERN_READ, PATTERN_SEND, PATTERN_ANSWER, PATTERNS };

struct greeting {
	uint64_t address;
	uint64_t key;
};

uint32_t stream_random(uint32_t seed, uint64_t number)
{
	uint64_t x = ((uint64_t)seed << 32) + number + UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(x >> 32);
}

static size_t part(unsigned index)
{
	return (size_t)index * STREAM_MOST;
}

static uint32_t pattern(const struct stream *stream, uint64_t round, unsigned what)
{
	return stream->seed * 1000003u + (uint32_t)round * PATTERNS + what;
}

/* Lengths around those at which the engine does something else. */
static size_t length(const struct stream *stream)
{
	static const size_t lengths[] = {1,    64,    1447,  4096,	  8191,	      8192,
					 8193, 65516, 65517, STREAM_MOST, 100 * 1024, 3};

	if (stream->is_random)
		return 1 + stream_random(stream->seed, stream->round) % STREAM_MOST;
	return lengths[(stream->round + stream->seed) % COUNT_OF(lengths)];
}

void stream_create(struct stream *stream, struct dt_ia *ia, uint32_t seed)
{
	*stream = (struct stream){.ia = ia, .seed = seed};
	dt_ep_create(ia, ia->pz, NULL, &stream->ep);
	dt_buf_create(ia, ia->pz, &stream->buf, part(PARTS), DAT_MEM_PRIV_ALL_FLAG);
}

void stream_free(struct stream *stream)
{
	dt_ep_free(&stream->ep);
	dt_buf_free(&stream->buf);
}

static void post_recv(struct stream *stream)
{
	DAT_LMR_TRIPLET to = dt_seg(&stream->buf, part(PART_IN), STREAM_MOST);

	dt_ok(dat_ep_post_recv(stream->ep.ep, 1, &to, dt_cookie(COOKIE_RECV),
			       DAT_COMPLETION_DEFAULT_FLAG));
}

/* The completion of what was posted with that cookie; false: it failed. */
static bool finish(DAT_EVD_HANDLE evd, uint64_t cookie, size_t len)
{
	const DAT_EVENT event = dt_event(evd);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(dto->user_cookie.as_64, cookie);
	if (dto->status != DAT_DTO_SUCCESS) {
		assert_true(dto->status == DAT_DTO_ERR_TRANSPORT ||
			    dto->status == DAT_DTO_ERR_FLUSHED);
		return false;
	}
	assert_int_equal(dto->transfered_length, len);
	return true;
}

static bool send_part(struct stream *stream, size_t len)
{
	DAT_LMR_TRIPLET from = dt_seg(&stream->buf, part(PART_OUT), len);

	dt_ok(dat_ep_post_send(stream->ep.ep, 1, &from, dt_cookie(COOKIE_SEND),
			       DAT_COMPLETION_DEFAULT_FLAG));
	return finish(stream->ep.request, COOKIE_SEND, len);
}

/* The first Receive is posted before the peer can send. */
void stream_connect(struct stream *stream, const struct sockaddr_storage *address,
		    DAT_CONN_QUAL qual)
{
	struct sockaddr_storage copy = *address;

	post_recv(stream);
	dt_ok(dat_ep_connect(stream->ep.ep, (DAT_IA_ADDRESS_PTR)&copy, qual, DT_WAIT_US, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

void stream_accept(struct stream *stream, DAT_CR_HANDLE cr)
{
	post_recv(stream);
	dt_ok(dat_cr_accept(cr, stream->ep.ep, 0, NULL));
}

void stream_greet(struct stream *stream)
{
	struct greeting greeting = {(uint64_t)(uintptr_t)stream->buf.p, stream->buf.rkey};

	/* what the leader reads in its first round */
	dt_fill(stream->buf.p + part(PART_READ), length(stream), pattern(stream, 0, PATTERN_READ));
	memcpy(stream->buf.p + part(PART_OUT), &greeting, sizeof(greeting));
	assert_true(send_part(stream, sizeof(greeting)));
	assert_true(finish(stream->ep.recv, COOKIE_RECV, sizeof(greeting)));
	memcpy(&greeting, stream->buf.p + part(PART_IN), sizeof(greeting));
	stream->remote = (DAT_RMR_TRIPLET){.target_address = greeting.address,
					   .rmr_context = (DAT_RMR_CONTEXT)greeting.key};
	post_recv(stream);
}

static DAT_RMR_TRIPLET remote_part(const struct stream *stream, unsigned index, size_t len)
{
	DAT_RMR_TRIPLET remote = stream->remote;

	remote.target_address += part(index);
	remote.segment_length = len;
	return remote;
}

static void post_write(struct stream *stream, size_t len)
{
	DAT_LMR_TRIPLET local = dt_seg(&stream->buf, part(PART_LOCAL), len);
	DAT_RMR_TRIPLET target = remote_part(stream, PART_WRITTEN, len);

	dt_ok(dat_ep_post_rdma_write(stream->ep.ep, 1, &local, dt_cookie(COOKIE_RDMA), &target,
				     DAT_COMPLETION_DEFAULT_FLAG));
}

void stream_rush(struct stream *stream, _Atomic uint64_t *done)
{
	for (unsigned i = 0; i < RUSH; i++)
		post_write(stream, STREAM_MOST);
	while (finish(stream->ep.request, COOKIE_RDMA, STREAM_MOST)) {
		++*done;
		post_write(stream, STREAM_MOST);
	}
}

static bool do_write(struct stream *stream, size_t len)
{
	dt_fill(stream->buf.p + part(PART_LOCAL), len,
		pattern(stream, stream->round, PATTERN_WRITE));
	post_write(stream, len);
	return finish(stream->ep.request, COOKIE_RDMA, len);
}

static bool do_read(struct stream *stream, size_t len)
{
	DAT_LMR_TRIPLET local = dt_seg(&stream->buf, part(PART_LOCAL), len);
	DAT_RMR_TRIPLET source = remote_part(stream, PART_READ, len);

	dt_ok(dat_ep_post_rdma_read(stream->ep.ep, 1, &local, dt_cookie(COOKIE_RDMA), &source,
				    DAT_COMPLETION_DEFAULT_FLAG));
	if (!finish(stream->ep.request, COOKIE_RDMA, len))
		return false;
	dt_check_pattern(stream->buf.p + part(PART_LOCAL), len,
			 pattern(stream, stream->round, PATTERN_READ));
	return true;
}

/* A round has a Send each way, and as a rule a Write and a Read. */
static bool has_operation(const struct stream *stream, unsigned what)
{
	return !stream->is_random || stream_random(stream->seed + what, stream->round) % 4 != 0;
}

void stream_leave_work(struct stream *stream)
{
	DAT_LMR_TRIPLET local = dt_seg(&stream->buf, part(PART_OUT), STREAM_MOST);
	DAT_RMR_TRIPLET target = remote_part(stream, PART_WRITTEN, STREAM_MOST);

	dt_ok(dat_ep_post_rdma_write(stream->ep.ep, 1, &local, dt_cookie(COOKIE_RDMA), &target,
				     DAT_COMPLETION_DEFAULT_FLAG));
	dt_ok(dat_ep_post_send(stream->ep.ep, 1, &local, dt_cookie(COOKIE_SEND),
			       DAT_COMPLETION_DEFAULT_FLAG));
}

bool stream_lead(struct stream *stream)
{
	const size_t len = length(stream);

	if (has_operation(stream, PATTERN_WRITE) && !do_write(stream, len))
		return false;
	if (has_operation(stream, PATTERN_READ) && !do_read(stream, len))
		return false;
	dt_fill(stream->buf.p + part(PART_OUT), len, pattern(stream, stream->round, PATTERN_SEND));
	if (!send_part(stream, len) || !finish(stream->ep.recv, COOKIE_RECV, len))
		return false;
	dt_check_pattern(stream->buf.p + part(PART_IN), len,
			 pattern(stream, stream->round, PATTERN_ANSWER));
	post_recv(stream);
	stream->round++;
	return true;
}

bool stream_follow(struct stream *stream)
{
	const size_t len = length(stream);
	uint32_t answer = pattern(stream, stream->round, PATTERN_ANSWER);

	if (!finish(stream->ep.recv, COOKIE_RECV, len))
		return false;
	dt_check_pattern(stream->buf.p + part(PART_IN), len,
			 pattern(stream, stream->round, PATTERN_SEND));
	if (has_operation(stream, PATTERN_WRITE))
		dt_check_pattern(stream->buf.p + part(PART_WRITTEN), len,
				 pattern(stream, stream->round, PATTERN_WRITE));
	post_recv(stream);
	stream->round++;
	dt_fill(stream->buf.p + part(PART_READ), length(stream),
		pattern(stream, stream->round, PATTERN_READ));
	dt_fill(stream->buf.p + part(PART_OUT), len, answer);
	return send_part(stream, len);
}

bool stream_is_over_tcp(const struct stream *stream)
{
	DAT_OPENDAT_PEER peer = {.size = sizeof(peer)};

	dt_ok(dat_opendat_peer(stream->ep.ep, &peer));
	return peer.flags & DAT_OPENDAT_PEER_TCP;
}
