// SPDX-License-Identifier: BSD-2-Clause
/*
 * The registration loops of dat_perf. The client registers a fragment, the server writes it once,
 * and the client frees it. Only one fragment is in use at a time; otherwise the registration of one
 * would overlap with the Write of another. The test reg-kept exchanges the same messages for memory
 * that stays registered.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "common.h"
#include "perf.h"
#include "perf_clock.h"
#include "perf_loop.h"
#include "perf_pattern.h"

static inline int register_memory(struct perf_worker *worker, unsigned char *data, uint64_t size,
				  DAT_LMR_HANDLE *lmr_out, DAT_RMR_CONTEXT *context_out)
{
	DAT_REGION_DESCRIPTION region = {.for_va = data};
	DAT_LMR_CONTEXT unused;
	DAT_RETURN code = dat_lmr_create(worker->session.ia, DAT_MEM_TYPE_VIRTUAL, region, size,
					 worker->session.pz, DAT_MEM_PRIV_ALL_FLAG, lmr_out,
					 &unused, context_out, NULL, NULL);

	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_lmr_create", code);
}

static inline int register_free(DAT_LMR_HANDLE lmr)
{
	DAT_RETURN code = dat_lmr_free(lmr);

	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_lmr_free", code);
}

/* The target of Write `number`. */
static inline unsigned char *register_target(const struct perf_worker *worker,
					     const struct perf_endpoint *endpoint, uint64_t number)
{
	uint64_t slot = worker->in_slots > 1 ? number % worker->in_slots : 0;

	return endpoint->in + slot * worker->slot_len;
}

/* --- the client --- */

/* Sends the target, and waits until the server has written it. */
static inline int register_exchange(struct perf_worker *worker, struct perf_endpoint *endpoint,
				    unsigned char *data, DAT_RMR_CONTEXT context)
{
	struct perf_fragment fragment = {.address = htobe64((uintptr_t)data),
					 .rmr_context = htobe32(context)};
	DAT_EVENT event;
	int rc;

	memcpy(endpoint->out, &fragment, sizeof(fragment));
	endpoint->sent++;
	rc = perf_post_send(worker, endpoint, endpoint->out, sizeof(fragment), endpoint->index,
			    DAT_COMPLETION_DEFAULT_FLAG);
	if (rc == 0)
		rc = perf_take(worker, worker->session.recv_evd, &event);
	if (rc != 0)
		return rc;
	endpoint->recv_done++;
	rc = perf_post_recv(worker, endpoint);
	return rc == 0 ? perf_take(worker, worker->session.request_evd, &event) : rc;
}

static inline int register_round(struct perf_worker *worker, struct perf_endpoint *endpoint,
				 const struct perf_run *run)
{
	unsigned char *data = register_target(worker, endpoint, endpoint->fragments);
	DAT_RMR_CONTEXT context = worker->in.rmr_context;
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
	int rc = 0, freed = 0;

	if (run->test == PERF_REG)
		rc = register_memory(worker, data, run->size, &lmr, &context);
	if (rc == 0)
		rc = register_exchange(worker, endpoint, data, context);
	if (lmr)
		freed = register_free(lmr);
	if (rc == 0 && worker->plan->is_checked &&
	    !perf_pattern_is(data, run->size, endpoint->fragments))
		worker->wrong++;
	endpoint->fragments++;
	return rc == 0 ? freed : rc;
}

/* Registers and frees memory without a Write. */
static inline int register_alone(struct perf_worker *worker, struct perf_endpoint *endpoint,
				 const struct perf_run *run)
{
	DAT_RMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	int rc = register_memory(worker, endpoint->in, run->size, &lmr, &context);

	return rc == 0 ? register_free(lmr) : rc;
}

static int register_lead(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	uint64_t since = perf_clock_ticks();
	uint64_t i;

	for (i = 0; i < count && !perf_is_over(worker, since); i++) {
		for (uint32_t e = 0; e < worker->endpoint_count; e++) {
			struct perf_endpoint *endpoint = &worker->endpoints[e];
			int rc = run->test == PERF_REG_FREE ? register_alone(worker, endpoint, run)
							    : register_round(worker, endpoint, run);
			uint64_t now = perf_clock_ticks();

			if (rc != 0)
				return rc;
			perf_record(worker, now - since);
			since = now;
		}
		perf_advance(worker, i + 1);
		if (tool_is_stopped)
			return -EINTR;
	}
	worker->done += i;
	return 0;
}

/* --- the server --- */

/* Writes the fragment, then sends an empty message, which arrives after the Write. */
static inline int register_write(struct perf_worker *worker, struct perf_endpoint *endpoint,
				 const struct perf_run *run)
{
	DAT_RMR_TRIPLET remote = {.segment_length = run->size};
	struct perf_fragment fragment;
	uint64_t slot = worker->in_slots > 1 ? endpoint->recv_done % worker->in_slots : 0;
	DAT_EVENT event;
	int rc = perf_take(worker, worker->session.recv_evd, &event);

	if (rc != 0)
		return rc;
	memcpy(&fragment, endpoint->in + slot * worker->slot_len, sizeof(fragment));
	endpoint->recv_done++;
	remote.target_address = be64toh(fragment.address);
	remote.rmr_context = be32toh(fragment.rmr_context);
	if (worker->plan->is_checked)
		perf_pattern_fill(endpoint->out, run->size, endpoint->fragments);
	endpoint->fragments++;
	rc = perf_post_rdma_at(worker, endpoint, endpoint->out, remote, false, endpoint->index,
			       DAT_COMPLETION_SUPPRESS_FLAG);
	endpoint->sent++;
	if (rc == 0)
		rc = perf_post_send(worker, endpoint, endpoint->out, 0, endpoint->index,
				    DAT_COMPLETION_DEFAULT_FLAG);
	if (rc == 0)
		rc = perf_post_recv(worker, endpoint);
	return rc == 0 ? perf_take(worker, worker->session.request_evd, &event) : rc;
}

static int register_follow(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		for (uint32_t e = 0; e < worker->endpoint_count; e++) {
			int rc = register_write(worker, &worker->endpoints[e], run);

			if (rc != 0)
				return rc;
		}
		perf_advance(worker, i + 1);
	}
	return 0;
}

int perf_register_run(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	return run->is_leader || run->test == PERF_REG_FREE ? register_lead(worker, run, count)
							    : register_follow(worker, run, count);
}
