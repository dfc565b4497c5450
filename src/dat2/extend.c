// SPDX-License-Identifier: BSD-2-Clause
/* dat_extension_op: the operations of dat_ib_extensions.h, with the arguments of its macros. */
#include "core/ep/dto.h"
#include "dat2/convert.h"
#include "dat2/front.h"

/* D2-EXT-05: a live handle of another kind than the operation takes. */
static bool is_ep(DAT_HANDLE handle)
{
	DAT_HANDLE_TYPE type;
	struct core_handle *cell = core_handle_lock_any(handle, &type);

	if (cell)
		core_handle_unlock(cell);
	return cell && type == DAT_HANDLE_TYPE_EP;
}

static DAT_RETURN write_immediate(DAT_EP_HANDLE ep, va_list args)
{
	DAT_COUNT count = va_arg(args, DAT_COUNT);
	const struct dat2_lmr_triplet *iov = va_arg(args, const struct dat2_lmr_triplet *);
	DAT_DTO_COOKIE cookie = va_arg(args, DAT_DTO_COOKIE);
	const struct dat2_rmr_triplet *remote = va_arg(args, const struct dat2_rmr_triplet *);
	uint32_t immediate = va_arg(args, uint32_t);
	DAT_COMPLETION_FLAGS flags = va_arg(args, DAT_COMPLETION_FLAGS);

	return dat2_ep_post_write_immediate(ep, count, iov, cookie, remote, immediate, flags);
}

static DAT_RETURN atomic(DAT_EP_HANDLE ep, bool is_swap, va_list args)
{
	uint64_t first = va_arg(args, uint64_t);
	uint64_t second = is_swap ? va_arg(args, uint64_t) : 0;
	const struct dat2_lmr_triplet *local = va_arg(args, const struct dat2_lmr_triplet *);
	DAT_DTO_COOKIE cookie = va_arg(args, DAT_DTO_COOKIE);
	const struct dat2_rmr_triplet *remote = va_arg(args, const struct dat2_rmr_triplet *);
	DAT_COMPLETION_FLAGS flags = va_arg(args, DAT_COMPLETION_FLAGS);
	DAT_LMR_TRIPLET iov;
	DAT_RMR_TRIPLET target;

	if (local)
		iov = dat2_local(local);
	if (remote)
		target = dat2_remote(remote);
	return dat2_status(is_swap ? core_ep_post_compare_swap(ep, first, second,
							       local ? &iov : NULL, cookie,
							       remote ? &target : NULL, flags)
				   : core_ep_post_fetch_add(ep, first, local ? &iov : NULL, cookie,
							    remote ? &target : NULL, flags));
}

static DAT_RETURN query_counters(DAT_HANDLE handle, va_list args)
{
	int counter = va_arg(args, int);
	uint64_t *values_out = va_arg(args, uint64_t *);

	return dat2_query_counters(handle, counter, values_out, va_arg(args, int));
}

static DAT_RETURN print_counters(DAT_HANDLE handle, va_list args)
{
	int counter = va_arg(args, int);

	return dat2_print_counters(handle, counter, va_arg(args, int));
}

/* The name is in place of a handle. */
static DAT_RETURN open_query(DAT_HANDLE name, va_list args)
{
	DAT_HANDLE *handle_out = va_arg(args, DAT_HANDLE *);
	uint64_t ia_mask = va_arg(args, uint64_t);
	struct dat2_ia_attr *ia_attr = va_arg(args, struct dat2_ia_attr *);
	uint64_t provider_mask = va_arg(args, uint64_t);

	return dat2_open_query(name, handle_out, ia_mask, ia_attr, provider_mask,
			       va_arg(args, struct dat2_provider_attr *));
}

DAT_RETURN dat2_extended_op(DAT_HANDLE handle, int operation, va_list args)
{
	static const struct core_arg arg = {"dat_extension_op", "handle", 1};

	switch (operation) {
	case DAT2_IB_FETCH_AND_ADD_OP:
	case DAT2_IB_CMP_AND_SWAP_OP:
	case DAT2_IB_RDMA_WRITE_IMMED_OP:
		break;
	case DAT2_IB_QUERY_COUNTERS_OP:
		return query_counters(handle, args);
	case DAT2_IB_PRINT_COUNTERS_OP:
		return print_counters(handle, args);
	case DAT2_IB_START_COUNTERS_OP:
		return dat2_switch_counters("dat_ib_start_counter", handle, va_arg(args, int));
	case DAT2_IB_STOP_COUNTERS_OP:
		return dat2_switch_counters("dat_ib_stop_counter", handle, va_arg(args, int));
	case DAT2_IB_OPEN_QUERY_OP:
		return open_query(handle, args);
	case DAT2_IB_CLOSE_QUERY_OP:
		return dat2_close_query(handle);
	default: /* D2-EXT-03 */
		return core_error((DAT_RETURN_TYPE)DAT2_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	}
	if (!is_ep(handle))
		return dat2_status(core_bad_handle(&arg, DAT_INVALID_HANDLE_EP, handle));
	if (operation == DAT2_IB_RDMA_WRITE_IMMED_OP)
		return write_immediate(handle, args);
	return atomic(handle, operation == DAT2_IB_CMP_AND_SWAP_OP, args);
}
