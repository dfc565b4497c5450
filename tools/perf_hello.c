// SPDX-License-Identifier: BSD-2-Clause
/* The private data of dat_perf's connections: builds, parses and checks it. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "perf.h"

void perf_hello_plan(struct perf_hello *hello_out, const struct perf_plan *plan)
{
	uint32_t flags = (plan->is_waiting ? PERF_FLAG_WAITING : 0u) |
			 (plan->is_shared ? PERF_FLAG_SHARED : 0u) |
			 (plan->is_checked ? PERF_FLAG_CHECKED : 0u) |
			 (plan->is_target_polling ? PERF_FLAG_TARGET_POLLS : 0u) |
			 (plan->is_bidirectional ? PERF_FLAG_BIDIRECTIONAL : 0u) |
			 (plan->is_huge ? PERF_FLAG_HUGE : 0u) |
			 (plan->is_srq ? PERF_FLAG_SRQ : 0u) |
			 plan->segments << PERF_FLAG_SEGMENTS_SHIFT;

	*hello_out = (struct perf_hello){
		.magic = htobe32(PERF_MAGIC),
		.version = htobe32(PERF_VERSION),
		.role = htobe32(PERF_ROLE_CONTROL),
		.nonce = htobe64(plan->nonce),
		.plan = {.size_max = htobe64(plan->size_max),
			 .window = htobe32(plan->window),
			 .signal = htobe32(plan->signal),
			 .endpoints = htobe32(plan->endpoints),
			 .threads = htobe32(plan->threads),
			 .idle = htobe32(plan->idle),
			 .flags = htobe32(flags)},
	};
}

void perf_hello_target(struct perf_hello *hello_out, enum perf_role role,
		       const struct perf_peer *peer, uint32_t index, uint64_t address,
		       DAT_RMR_CONTEXT context)
{
	*hello_out = (struct perf_hello){
		.magic = htobe32(PERF_MAGIC),
		.version = htobe32(PERF_VERSION),
		.role = htobe32(role),
		.index = htobe32(index),
		.nonce = htobe64(peer->plan.nonce),
		.target = {.address = htobe64(address), .rmr_context = htobe32(context)},
	};
}

int perf_hello_read(const struct session_private *data, struct perf_hello *hello_out)
{
	struct perf_hello wire;

	/* a transport may pad private data */
	if (data->len < sizeof(wire))
		return -EPROTO;
	memcpy(&wire, data->data, sizeof(wire));
	*hello_out = (struct perf_hello){
		.magic = be32toh(wire.magic),
		.version = be32toh(wire.version),
		.role = be32toh(wire.role),
		.index = be32toh(wire.index),
		.nonce = be64toh(wire.nonce),
	};
	if (hello_out->magic != PERF_MAGIC || hello_out->version != PERF_VERSION)
		return -EPROTO;
	if (hello_out->role == PERF_ROLE_CONTROL) {
		hello_out->plan.size_max = be64toh(wire.plan.size_max);
		hello_out->plan.window = be32toh(wire.plan.window);
		hello_out->plan.signal = be32toh(wire.plan.signal);
		hello_out->plan.endpoints = be32toh(wire.plan.endpoints);
		hello_out->plan.threads = be32toh(wire.plan.threads);
		hello_out->plan.idle = be32toh(wire.plan.idle);
		hello_out->plan.flags = be32toh(wire.plan.flags);
	} else {
		hello_out->target.address = be64toh(wire.target.address);
		hello_out->target.rmr_context = be32toh(wire.target.rmr_context);
	}
	return 0;
}

void perf_plan_read(const struct perf_hello *hello, struct perf_plan *plan_out)
{
	*plan_out = (struct perf_plan){
		.nonce = hello->nonce,
		.size_max = hello->plan.size_max,
		.window = hello->plan.window,
		.signal = hello->plan.signal,
		.endpoints = hello->plan.endpoints,
		.threads = hello->plan.threads,
		.idle = hello->plan.idle,
		.is_waiting = hello->plan.flags & PERF_FLAG_WAITING,
		.is_shared = hello->plan.flags & PERF_FLAG_SHARED,
		.is_checked = hello->plan.flags & PERF_FLAG_CHECKED,
		.is_target_polling = hello->plan.flags & PERF_FLAG_TARGET_POLLS,
		.is_bidirectional = hello->plan.flags & PERF_FLAG_BIDIRECTIONAL,
		.is_huge = hello->plan.flags & PERF_FLAG_HUGE,
		.is_srq = hello->plan.flags & PERF_FLAG_SRQ,
		.segments = hello->plan.flags >> PERF_FLAG_SEGMENTS_SHIFT & 0xff,
	};
}

bool perf_plan_is_good(const struct perf_plan *plan)
{
	uint64_t slots = plan->is_checked || plan->is_srq ? (uint64_t)3 * plan->window : 2;

	if (plan->size_max == 0 || plan->size_max > PERF_SIZE_LIMIT)
		return false;
	if (plan->window == 0 || plan->window > PERF_WINDOW_LIMIT || plan->signal == 0 ||
	    plan->signal > plan->window)
		return false;
	if (plan->endpoints == 0 || plan->endpoints > PERF_ENDPOINTS_LIMIT || plan->threads == 0 ||
	    plan->threads > PERF_THREADS_LIMIT || plan->threads > plan->endpoints ||
	    plan->idle > PERF_IDLE_LIMIT)
		return false;
	/* a bidirectional run polls two queues */
	if (plan->is_bidirectional && plan->is_waiting)
		return false;
	/* messages of all endpoints arrive in the buffers of any of them */
	if (plan->is_srq && (plan->is_bidirectional || plan->is_checked))
		return false;
	if (plan->segments == 0 || plan->segments > PERF_SEGMENTS_LIMIT ||
	    (plan->is_huge && plan->is_shared))
		return false;
	return plan->size_max * slots <= PERF_BYTES_LIMIT / plan->endpoints;
}

void perf_welcome_make(struct perf_welcome *welcome_out, uint64_t address, DAT_RMR_CONTEXT context)
{
	*welcome_out = (struct perf_welcome){
		.magic = htobe32(PERF_MAGIC),
		.version = htobe32(PERF_VERSION),
		.address = htobe64(address),
		.rmr_context = htobe32(context),
	};
}

int perf_welcome_read(const struct session_private *data, DAT_RMR_TRIPLET *remote_out)
{
	struct perf_welcome wire;

	if (data->len < sizeof(wire))
		return -EPROTO;
	memcpy(&wire, data->data, sizeof(wire));
	if (be32toh(wire.magic) != PERF_MAGIC || be32toh(wire.version) != PERF_VERSION)
		return -EPROTO;
	*remote_out = (DAT_RMR_TRIPLET){.rmr_context = be32toh(wire.rmr_context),
					.target_address = be64toh(wire.address)};
	return 0;
}

void perf_welcome_redirect(struct perf_welcome *welcome_out, DAT_CONN_QUAL qualifier)
{
	perf_welcome_make(welcome_out, qualifier, 0);
	welcome_out->is_redirect = htobe32(1);
}

bool perf_welcome_is_redirect(const struct session_private *data, DAT_CONN_QUAL *qualifier_out)
{
	struct perf_welcome wire;
	DAT_RMR_TRIPLET unused;

	if (perf_welcome_read(data, &unused) != 0)
		return false;
	memcpy(&wire, data->data, sizeof(wire));
	*qualifier_out = be64toh(wire.address);
	return be32toh(wire.is_redirect) == 1;
}
