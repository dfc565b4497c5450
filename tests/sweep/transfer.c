// SPDX-License-Identifier: BSD-2-Clause
/* The transfers of the scenario. */
#include "step.h"

#include <string.h>

#define ROUNDS 3 /* the first RDMA of a region comes before its mapping */

static DAT_LMR_TRIPLET local(const struct run *run, enum side side, unsigned offset, unsigned len)
{
	return (DAT_LMR_TRIPLET){.lmr_context = run->ends[side].lkey,
				 .virtual_address = (uintptr_t)step_memory[side] + offset,
				 .segment_length = len};
}

static DAT_RMR_TRIPLET remote(const struct run *run, unsigned len)
{
	return (DAT_RMR_TRIPLET){.rmr_context = run->ends[B].rkey,
				 .target_address = (uintptr_t)step_memory[B],
				 .segment_length = len};
}

/* Posts fail if a fault has ended the connection. */
static bool posted(const struct run *run, DAT_RETURN ret, const char *call)
{
	if (run->has_fault && sweep->fired && DAT_GET_TYPE(ret) == DAT_INVALID_STATE)
		return false;
	return step_check(run, ret, call);
}

#define POSTED(call) (step_at(__func__, __LINE__), posted(run, call, #call))

/* Waits for that many completions. True if all succeeded. */
static bool completions(struct run *run, unsigned count)
{
	bool all = true;
	DAT_EVENT event;

	for (unsigned i = 0; i < count; i++) {
		DAT_DTO_COMPLETION_STATUS status;

		if (!EVENT(run->dto, &event))
			return false;
		status = event.event_number == DAT_RMR_BIND_COMPLETION_EVENT
				 ? event.event_data.rmr_completion_event_data.status
				 : event.event_data.dto_completion_event_data.status;
		if (status != DAT_DTO_SUCCESS && (!run->has_fault || !sweep->fired))
			step_wrong("completion status", (DAT_RETURN)status);
		all = all && status == DAT_DTO_SUCCESS;
	}
	return all;
}

static bool same(unsigned len)
{
	if (memcmp(step_memory[A], step_memory[B], len) == 0)
		return true;
	step_wrong("bytes differ after a successful transfer", DAT_SUCCESS);
	return false;
}

static bool send_message(struct run *run, unsigned len)
{
	DAT_LMR_TRIPLET from = local(run, A, 0, len), to = local(run, B, 0, len);
	const DAT_DTO_COOKIE cookie = {.as_64 = len};

	memset(step_memory[B], 0, len);
	if (!POSTED(dat_ep_post_recv(run->ends[B].ep, 1, &to, cookie, DAT_COMPLETION_DEFAULT_FLAG)))
		return false;
	if (!POSTED(dat_ep_post_send(run->ends[A].ep, 1, &from, cookie,
				     DAT_COMPLETION_DEFAULT_FLAG)))
		return false;
	return completions(run, 2) && same(len);
}

static bool rdma(struct run *run, unsigned len, bool is_read)
{
	DAT_LMR_TRIPLET from = local(run, A, 0, len);
	DAT_RMR_TRIPLET to = remote(run, len);
	const DAT_DTO_COOKIE cookie = {.as_64 = len};

	memset(step_memory[is_read ? A : B], 0, len);
	if (is_read) {
		memset(step_memory[B], 0x5a, len);
		if (!POSTED(dat_ep_post_rdma_read(run->ends[A].ep, 1, &from, cookie, &to,
						  DAT_COMPLETION_DEFAULT_FLAG)))
			return false;
	} else if (!POSTED(dat_ep_post_rdma_write(run->ends[A].ep, 1, &from, cookie, &to,
						  DAT_COMPLETION_DEFAULT_FLAG))) {
		return false;
	}
	return completions(run, 1) && same(len);
}

static bool bind_window(struct run *run)
{
	const DAT_LMR_TRIPLET range = local(run, A, 0, 4096);
	const DAT_RMR_COOKIE cookie = {.as_64 = 1};
	DAT_RMR_CONTEXT context;

	return POSTED(dat_rmr_bind(run->rmr, &range, DAT_MEM_PRIV_REMOTE_READ_FLAG, run->ends[A].ep,
				   cookie, DAT_COMPLETION_DEFAULT_FLAG, &context)) &&
	       completions(run, 1);
}

bool step_transfer(struct run *run)
{
	for (int i = 0; i < ROUNDS; i++) {
		memset(step_memory[A], 'a' + i, SWEEP_LEN);
		if (!send_message(run, 64) || !send_message(run, SWEEP_LEN) ||
		    !rdma(run, 64, false) || !rdma(run, SWEEP_LEN, false) ||
		    !rdma(run, SWEEP_LEN, true) || !bind_window(run))
			return false;
	}
	return true;
}
