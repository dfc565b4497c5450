// SPDX-License-Identifier: BSD-2-Clause
/* Posting requests and Receives: the general path of each call (data_path.h has the fast one). */
#ifndef CORE_DTO_H
#define CORE_DTO_H

#include "core/base/handle.h"

/* The slow paths of the posting calls. They must not be inlined into the fast paths. */
__attribute__((noinline, cold)) DAT_RETURN
core_ep_post_send_slow(DAT_EP_HANDLE handle, DAT_COUNT segments, const DAT_LMR_TRIPLET *iov,
		       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
__attribute__((noinline, cold)) DAT_RETURN
core_ep_post_rdma_write_slow(DAT_EP_HANDLE handle, DAT_COUNT segments, const DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			     DAT_COMPLETION_FLAGS flags);
__attribute__((noinline, cold)) DAT_RETURN
core_ep_post_rdma_read_slow(DAT_EP_HANDLE handle, DAT_COUNT segments, const DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			    DAT_COMPLETION_FLAGS flags);
__attribute__((noinline, cold)) DAT_RETURN
core_ep_post_recv_slow(DAT_EP_HANDLE handle, DAT_COUNT segments, const DAT_LMR_TRIPLET *iov,
		       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

/*
 * Operations that DAT 1.2 has as extensions alone. Their parameters have the same numbers there as
 * in the macros of DAT 2.0.
 */
DAT_RETURN core_ep_post_write_immediate(DAT_EP_HANDLE handle, DAT_COUNT segments,
					const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					const DAT_RMR_TRIPLET *remote, uint32_t immediate,
					DAT_COMPLETION_FLAGS flags);
/* The message kills a key of the peer before its Receive completes. */
DAT_RETURN core_ep_post_send_invalidate(DAT_EP_HANDLE handle, DAT_COUNT segments,
					const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT context);
/* Adds to the 8 bytes at the remote address, or stores `swap` there if they equal `compare`; the
 * value before comes into the local segment. */
DAT_RETURN core_ep_post_fetch_add(DAT_EP_HANDLE handle, uint64_t add, const DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags);
DAT_RETURN core_ep_post_compare_swap(DAT_EP_HANDLE handle, uint64_t compare, uint64_t swap,
				     const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
				     const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);

#endif
