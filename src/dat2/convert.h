// SPDX-License-Identifier: BSD-2-Clause
/* Conversions between the types of the core, which are those of DAT 1.2, and those of DAT 2.0. */
#ifndef DAT2_CONVERT_H
#define DAT2_CONVERT_H

#include "core/base/status.h"
#include "core/base/instance.h"
#include "core/event/evd.h"
#include "dat2/types.h"

/* A return code of the core. */
DAT_RETURN dat2_status_of_failure(DAT_RETURN ret);
static inline DAT_RETURN dat2_status(DAT_RETURN ret)
{
	return __builtin_expect(ret == DAT_SUCCESS, true) ? ret : dat2_status_of_failure(ret);
}

/* Moves the number of the argument in a code of the core: to a call that has `count` arguments more
 * in front of those from number `first`. */
DAT_RETURN dat2_shift_arg(DAT_RETURN ret, unsigned int first, unsigned int count);

/* The consumer's handle of the instance of that handle (D2-REG-16). */
DAT_IA_HANDLE dat2_consumer_ia(DAT_IA_HANDLE ia_handle);

/* The smaller of the core's length and the largest of DAT 2.0 (D2-IA-05). */
static inline uint32_t dat2_length(DAT_VLEN length)
{
	return length > UINT32_MAX ? UINT32_MAX : (uint32_t)length;
}

void dat2_ep_attr_in(const struct dat2_ep_attr *from, DAT_EP_ATTR *to);
void dat2_ep_attr_out(const DAT_EP_ATTR *from, struct dat2_ep_attr *to);

/* How DAT 2.0 reports a completion, by the operation in its note: those of InfiniBand have extension
 * data, with a type; a message may have killed a context. */
struct dat2_kind {
	uint32_t operation; /* enum dat2_operation */
	bool has_more;
	uint8_t type; /* enum dat2_ib_type */
};
extern const struct dat2_kind dat2_kinds[];

/* What such a completion has more: the number and the extension data, or the context. */
void dat2_value_out(const struct core_note *from, struct dat2_event *to);
/* Any event but the completion of a transfer. */
void dat2_event_out_other(DAT_EVENT *from, struct dat2_event *to);

/* An event of the core. */
CORE_INLINE void dat2_event_out(DAT_EVENT *event, struct dat2_event *to)
{
	const struct core_note *from = core_event_note(event);
	const struct dat2_kind *kind = &dat2_kinds[from->op];

	if (__builtin_expect(from->event_number != DAT_DTO_COMPLETION_EVENT, false)) {
		dat2_event_out_other(event, to);
		return;
	}
	to->event_number = DAT_DTO_COMPLETION_EVENT;
	/* relaxed: only keeps the compiler from combining the loads (evd_queue.c) */
	to->evd_handle = __atomic_load_n(&from->evd_handle, __ATOMIC_RELAXED);
	to->data.dto.ep_handle = __atomic_load_n(&from->ep_handle, __ATOMIC_RELAXED);
	to->data.dto.user_cookie = from->user_cookie;
	to->data.dto.status = from->status;
	to->data.dto.transfered_length = (uint32_t)from->transfered_length;
	to->data.dto.operation = kind->operation;
	to->data.dto.rmr_context = 0;
	if (__builtin_expect(kind->has_more, false))
		dat2_value_out(from, to);
}

static inline DAT_LMR_TRIPLET dat2_local(const struct dat2_lmr_triplet *from)
{
	return (DAT_LMR_TRIPLET){.lmr_context = from->lmr_context,
				 .virtual_address = from->virtual_address,
				 .segment_length = from->segment_length};
}

/* Word by word, as data_copy_local() of the core. */
CORE_INLINE void dat2_local_put(volatile DAT_LMR_TRIPLET *to,
				const volatile struct dat2_lmr_triplet *from)
{
	to->lmr_context = from->lmr_context;
	to->virtual_address = from->virtual_address;
	to->segment_length = from->segment_length;
}

CORE_INLINE void dat2_remote_put(volatile DAT_RMR_TRIPLET *to,
				 const volatile struct dat2_rmr_triplet *from)
{
	to->rmr_context = from->rmr_context;
	to->target_address = from->virtual_address;
	to->segment_length = from->segment_length;
}

static inline DAT_RMR_TRIPLET dat2_remote(const struct dat2_rmr_triplet *from)
{
	return (DAT_RMR_TRIPLET){.rmr_context = from->rmr_context,
				 .target_address = from->virtual_address,
				 .segment_length = from->segment_length};
}

#endif
