// SPDX-License-Identifier: BSD-2-Clause
/* Either side of dat_perf: the adapter, and the control connection. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "common.h"
#include "perf.h"
#include "perf_clock.h"
#include "perf_options.h"
#include "perf_idle.h"

#define PERF_CONTROL_ROOM 64u

/* A connection may need one or two descriptors. */
static void perf_raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int perf_peer_open(struct perf_peer *peer, const struct perf_options *options)
{
	int rc;

	*peer = (struct perf_peer){.plan = options->plan};
	perf_raise_descriptors();
	rc = perf_usage_space(&peer->space_before);
	if (rc != 0)
		return rc;
	/* waits instead of polling: set-up and control messages must not take processor time from
	 * measurements */
	return session_open(&peer->session, options->side.adapter, false, options->side.timeout_ms);
}

void perf_peer_close(struct perf_peer *peer)
{
	perf_peer_reset(peer);
	session_close(&peer->session);
}

void perf_peer_reset(struct perf_peer *peer)
{
	DAT_EVENT event;

	perf_idle_release(peer);
	perf_workers_destroy(peer);
	if (peer->control)
		dat_ep_free(peer->control);
	peer->control = DAT_HANDLE_NULL;
	session_buffer_destroy(&peer->control_buffer);
	if (peer->connect_evd)
		dat_evd_free(peer->connect_evd);
	peer->connect_evd = DAT_HANDLE_NULL;
	/* discard the events of this client */
	while (dat_evd_dequeue(peer->session.connect_evd, &event) == DAT_SUCCESS)
		continue;
	while (dat_evd_dequeue(peer->session.recv_evd, &event) == DAT_SUCCESS)
		continue;
	while (dat_evd_dequeue(peer->session.request_evd, &event) == DAT_SUCCESS)
		continue;
}

static int perf_control_repost(struct perf_peer *peer, uint64_t cookie)
{
	return session_post_recv(&peer->control_buffer, cookie * PERF_CONTROL_ROOM,
				 PERF_CONTROL_ROOM, peer->control, cookie);
}

int perf_control_prepare(struct perf_peer *peer)
{
	int rc = session_endpoint_create(&peer->session, &peer->control);

	if (rc == 0)
		rc = session_buffer_create(&peer->session, (size_t)3 * PERF_CONTROL_ROOM,
					   &peer->control_buffer);
	if (rc == 0)
		rc = perf_control_repost(peer, 0);
	if (rc == 0)
		rc = perf_control_repost(peer, 1);
	return rc;
}

int perf_control_send(struct perf_peer *peer, const struct perf_control *control)
{
	struct perf_control wire = {
		.magic = htobe32(PERF_MAGIC),
		.type = htobe32(control->type),
		.test = htobe32((uint32_t)control->test),
		.size = htobe64(control->size),
		.count = htobe64(control->count),
		.warm_up = htobe64(control->warm_up),
		.values = {htobe64(control->values[0]), htobe64(control->values[1]),
			   htobe64(control->values[2])},
	};
	int rc;

	memcpy(peer->control_buffer.data + (size_t)2 * PERF_CONTROL_ROOM, &wire, sizeof(wire));
	rc = session_post_send(&peer->control_buffer, (size_t)2 * PERF_CONTROL_ROOM, sizeof(wire),
			       peer->control);
	if (rc != 0)
		return rc;
	return session_complete(&peer->session, peer->session.request_evd, NULL, NULL);
}

/* Copies a received message, and posts its Receive again. */
static int perf_control_copy(struct perf_peer *peer, uint64_t cookie, size_t len,
			     struct perf_control *wire_out)
{
	memset(wire_out, 0, sizeof(*wire_out));
	memcpy(wire_out, peer->control_buffer.data + cookie * PERF_CONTROL_ROOM,
	       len < sizeof(*wire_out) ? len : sizeof(*wire_out));
	return perf_control_repost(peer, cookie);
}

/* Takes one message. -ENOTCONN: the peer has ended the connection. */
static int perf_control_take(struct perf_peer *peer, struct perf_control *wire_out,
			     uint32_t timeout_ms)
{
	struct session session = peer->session;
	uint64_t cookie;
	size_t len;
	int rc;

	session.timeout_ms = timeout_ms;
	rc = session_complete(&session, session.recv_evd, &cookie, &len);
	return rc == 0 ? perf_control_copy(peer, cookie, len, wire_out) : rc;
}

/* Takes one message if there is one: 1, otherwise 0. */
static int perf_control_poll(struct perf_peer *peer, struct perf_control *wire_out)
{
	DAT_EVENT event;
	uint64_t cookie;
	size_t len;
	int rc;

	if (dat_evd_dequeue(peer->session.recv_evd, &event) != DAT_SUCCESS)
		return 0;
	rc = session_completion(&event, &cookie, &len);
	if (rc == 0)
		rc = perf_control_copy(peer, cookie, len, wire_out);
	return rc == 0 ? 1 : rc;
}

static int perf_control_read(const struct perf_control *message, uint32_t type,
			     struct perf_control *control_out)
{
	const struct perf_control wire = *message;

	*control_out = (struct perf_control){
		.magic = be32toh(wire.magic),
		.type = be32toh(wire.type),
		.test = be32toh(wire.test),
		.size = be64toh(wire.size),
		.count = be64toh(wire.count),
		.warm_up = be64toh(wire.warm_up),
		.values = {be64toh(wire.values[0]), be64toh(wire.values[1]),
			   be64toh(wire.values[2])},
	};
	if (control_out->magic != PERF_MAGIC || (type != 0 && control_out->type != type)) {
		tool_complain("the peer sent an invalid control message");
		return -EPROTO;
	}
	return 0;
}

int perf_control_receive(struct perf_peer *peer, uint32_t type, struct perf_control *control_out)
{
	struct perf_control wire;
	/* a request may arrive at any time; an answer must arrive within the time limit */
	int rc = perf_control_take(peer, &wire, type == 0 ? 0 : peer->session.timeout_ms);

	return rc == 0 ? perf_control_read(&wire, type, control_out) : rc;
}

int perf_control_ask(struct perf_peer *peer, struct perf_control *control)
{
	int rc = perf_control_send(peer, control);

	if (rc != 0)
		return rc;
	return perf_control_receive(peer, PERF_CONTROL_ANSWER, control);
}

/* The peer's STOP for one worker. A second one for it is invalid. */
static int perf_stop_serve(struct perf_peer *peer, const struct perf_control *stop)
{
	struct perf_control answer = {.type = PERF_CONTROL_ANSWER};
	struct perf_worker *worker =
		stop->test < peer->plan.threads ? &peer->workers[stop->test] : NULL;
	uint64_t scale;

	if (!worker || stop->count > PERF_STOP_LIMIT ||
	    atomic_load_explicit(&worker->limit, memory_order_relaxed) != UINT64_MAX) {
		tool_complain("the client ended a worker that does not run");
		return -EPROTO;
	}
	peer->stops++;
	worker->peer_done = stop->count;
	scale = worker->is_message_rate ? worker->endpoint_count : 1;
	atomic_store_explicit(&worker->limit, stop->count * scale, memory_order_relaxed);
	/* a worker that follows still runs, and has no transfers of its own */
	if (!worker->is_following) {
		answer.values[0] = worker->done;
		answer.values[1] = worker->counted;
		answer.values[2] = (uint64_t)((double)(worker->end_ticks - worker->start_ticks) *
					      perf_clock_period_ns());
	}
	return perf_control_send(peer, &answer);
}

int perf_stop_take(struct perf_peer *peer, bool is_waiting)
{
	struct perf_control wire, stop;
	int rc = is_waiting ? perf_control_take(peer, &wire, 0) : perf_control_poll(peer, &wire);

	if (rc < 0 || (rc == 0 && !is_waiting))
		return rc;
	rc = perf_control_read(&wire, PERF_CONTROL_STOP, &stop);
	return rc == 0 ? perf_stop_serve(peer, &stop) : rc;
}

int perf_request_take(struct perf_peer *peer, enum perf_role role, DAT_CR_HANDLE *request_out,
		      struct perf_hello *hello_out)
{
	struct session *session = &peer->session;
	struct session_private data;
	int rc;

	for (;;) {
		rc = session_request_wait(session, session->timeout_ms, request_out, &data);
		if (rc == -ETIMEDOUT)
			tool_complain("the client did not connect in %u ms", session->timeout_ms);
		if (rc != 0)
			return rc;
		if (perf_hello_read(&data, hello_out) == 0 && hello_out->role == role &&
		    hello_out->nonce == peer->plan.nonce)
			return 0;
		dat_cr_reject(*request_out);
	}
}
