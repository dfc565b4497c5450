// SPDX-License-Identifier: BSD-2-Clause
/* The run of one side; see the header. */
#include "side.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVD_LEN 512
#define RUN_S 100u /* longest run of a sequence */

/* --- the trace --- */

void side_trace(struct side *side, const char *format, ...)
{
	size_t *len = &side->shared->trace_len[side->me];
	char *text = side->shared->trace[side->me] + *len;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, TRACE_LEN - *len, format, args);
	va_end(args);
	if (n < 0 || *len + (size_t)n + 2 > TRACE_LEN)
		side_stop(side);
	text[n] = '\n';
	text[n + 1] = 0;
	*len += (size_t)n + 1;
}

void side_stop(struct side *side)
{
	side->shared->is_stopped = true;
	_exit(0); /* the trace says why */
}

const char *side_code(DAT_RETURN ret)
{
	return ret == DAT_SUCCESS ? "DAT_SUCCESS" : dt_strerror(ret);
}

/* Returns when the other side has called it, too. */
void side_meet(struct side *side)
{
	const uint64_t end = dt_now_us() + 2 * side->wait_us;
	struct pollfd pollfd = {.fd = side->socket, .events = POLLIN};
	char byte = 0;

	if (send(side->socket, &byte, 1, MSG_NOSIGNAL) == 1) {
		while (dt_now_us() < end && !side->shared->is_stopped)
			if (poll(&pollfd, 1, 100) == 1 && read(side->socket, &byte, 1) == 1)
				return;
	}
	side_trace(side, "the other side does not come");
	side_stop(side);
}

/* --- observations --- */

static void observe_ep(struct side *side, int number)
{
	DAT_BOOLEAN recv_idle = DAT_FALSE, request_idle = DAT_FALSE;
	DAT_COUNT buffers = -2, span = -2;
	DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
	DAT_RETURN ret;

	if (!side->ep[number].ep)
		return;
	ret = dat_ep_get_status(side->ep[number].ep, &state, &recv_idle, &request_idle);
	dat_ep_recv_query(side->ep[number].ep, &buffers, &span);
	side_trace(side, "  ep%d state: %s %d, idle %d %d, Receives %d %d", number, side_code(ret),
		   (int)state, (int)recv_idle, (int)request_idle, (int)buffers, (int)span);
}

static void observe_memory(struct side *side, int ep, unsigned areas)
{
	static const enum region regions[AREAS] = {REGION_TARGET, REGION_WINDOW};

	for (int area = 0; area < AREAS; area++) {
		const unsigned char *p = side->region[regions[area]].p + (size_t)ep * AREA;

		if (areas >> area & 1)
			side_trace(side, "  ep%d area %d: %016" PRIx64, ep, area,
				   memory_hash(p, AREA, 0));
	}
}

static void settle(struct side *side, const struct step *step)
{
	const struct settle *settle = &side->sequence->settle[step->count];
	const struct shared *shared = side->shared;
	DAT_SRQ_PARAM srq;

	events_settle(side, settle);
	side_meet(side);
	for (int ep = 0; ep < side->sequence->eps; ep++) {
		observe_ep(side, ep);
		observe_memory(side, ep, settle->observe[side->me][ep]);
		/* DTO-52 */
		if (shared->sent[side->me][ep] > shared->received[!side->me][ep])
			side_trace(side, "  ep%d: more messages completed than were received", ep);
	}
	if (side->srq && dat_srq_query(side->srq, DAT_SRQ_FIELD_ALL, &srq) == DAT_SUCCESS)
		side_trace(side, "  SRQ: %d available, %d outstanding",
			   (int)srq.available_dto_count, (int)srq.outstanding_dto_count);
	side_meet(side);
}

/* --- the run --- */

static void create(struct side *side)
{
	const struct sequence *sequence = side->sequence;
	DAT_SRQ_ATTR srq_attr = {SRQ_QUEUE, 1, DAT_SRQ_LW_DEFAULT};

	memory_start(side);
	if (sequence->shape[side->me].has_srq)
		dt_ok(dat_srq_create(side->ia.ia, side->ia.pz, &srq_attr, &side->srq));
	for (int ep = 0; ep < sequence->eps; ep++) {
		dt_ok(dat_rmr_create(side->ia.pz, &side->ep[ep].rmr));
		for (int stream = 0; stream < STREAMS; stream++) {
			const int evd = sequence_evd(sequence, side->me, ep, (enum stream)stream);

			if (!side->evd[evd])
				side->evd[evd] =
					dt_evd_create(&side->ia, EVD_LEN,
						      DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG |
							      DAT_EVD_RMR_BIND_FLAG);
		}
	}
	dt_listen(&side->ia, &side->listener);
	side->shared->qual[side->me] = side->listener.qual;
	side_meet(side);
}

/* COMPAT-16: whatever is left is freed in order. */
static void destroy(struct side *side)
{
	DAT_EVENT event;

	if (dat_evd_dequeue(side->ia.async, &event) == DAT_SUCCESS)
		side_trace(side, "asynchronous event 0x%05x", (unsigned)event.event_number);
	for (int ep = 0; ep < side->sequence->eps; ep++) {
		if (side->ep[ep].ep)
			side_trace(side, "ep_free: %s", side_code(dat_ep_free(side->ep[ep].ep)));
		side_trace(side, "rmr_free: %s", side_code(dat_rmr_free(side->ep[ep].rmr)));
	}
	if (side->srq)
		side_trace(side, "srq_free: %s", side_code(dat_srq_free(side->srq)));
	for (int region = 0; region < REGIONS; region++)
		side_trace(side, "lmr_free: %s", side_code(dat_lmr_free(side->region[region].lmr)));
	for (int evd = 0; evd < EVDS; evd++)
		if (side->evd[evd])
			side_trace(side, "evd_free: %s", side_code(dat_evd_free(side->evd[evd])));
	dt_unlisten(&side->listener);
	side_meet(side);
}

static void run(struct side *side)
{
	create(side);
	for (int number = 0; number < side->sequence->steps; number++) {
		const struct step *step = &side->sequence->step[number];

		if (step->op == OP_SETTLE) {
			side_trace(side, "%d settle", number);
			settle(side, step);
		} else if (step->op == OP_CONNECT) {
			call_connect(side, number);
		} else if (step->side == side->me) {
			side_trace(side, "%d: %s", number, side_code(call_run(side, number)));
		}
		side->ep[step->ep].is_racy |= step->is_racy;
	}
	destroy(side);
}

static void forget(struct side *side)
{
	const size_t begin = offsetof(struct side, listener);

	memset((char *)side + begin, 0, sizeof(*side) - begin);
}

void side_serve(struct side *side, int parent, uint64_t seed)
{
	unsigned number;
	char byte = 0;

	dt_ia_open(&side->ia);
	while (read(parent, &number, sizeof(number)) == (ssize_t)sizeof(number)) {
		alarm(RUN_S);
		sequence_generate(side->sequence, seed, number);
		forget(side);
		run(side);
		if (write(parent, &byte, 1) != 1)
			return;
	}
	dt_ia_close(&side->ia);
}
