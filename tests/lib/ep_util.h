// SPDX-License-Identifier: BSD-2-Clause
/* Helpers of the endpoint tests: short posts, queries, and qualifiers without a listener. */
#ifndef TESTS_EP_UTIL_H
#define TESTS_EP_UTIL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "dt.h"

/* --- posts --- */

DAT_RETURN ep_recv_empty(DAT_EP_HANDLE ep, uint64_t cookie);
DAT_RETURN ep_send_empty(DAT_EP_HANDLE ep, uint64_t cookie);
DAT_RETURN ep_recv(DAT_EP_HANDLE ep, const struct dt_buf *buf, size_t offset, size_t len,
		   uint64_t cookie);
DAT_RETURN ep_send(DAT_EP_HANDLE ep, const struct dt_buf *buf, size_t offset, size_t len,
		   uint64_t cookie);
DAT_RETURN ep_write(DAT_EP_HANDLE ep, const struct dt_buf *from, size_t offset,
		    const struct dt_buf *to, size_t target, size_t len, uint64_t cookie);
DAT_RETURN ep_read(DAT_EP_HANDLE ep, const struct dt_buf *to, size_t offset,
		   const struct dt_buf *from, size_t source, size_t len, uint64_t cookie);
/* Sends one byte from a to b and dequeues both completions. */
void ep_check_traffic(struct dt_ep *a, struct dt_ep *b, const struct dt_buf *buf);

/* --- queries --- */

DAT_EP_PARAM ep_query(DAT_EP_HANDLE ep);
bool ep_is_recv_idle(DAT_EP_HANDLE ep);
bool ep_is_request_idle(DAT_EP_HANDLE ep);
/* Compares all queried attributes except addresses, ports and state. */
void ep_check_same_config(const DAT_EP_PARAM *a, const DAT_EP_PARAM *b);
bool ep_is_disconnected(void *arg);

/* --- service points --- */

/* A qualifier without a listener. */
DAT_CONN_QUAL ep_free_qual(struct dt_ia *ia);
/* Reserves the endpoint on a qualifier that was free a moment ago; returns the qualifier. */
DAT_CONN_QUAL ep_reserve(struct dt_ia *ia, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
			 DAT_RSP_HANDLE *rsp);
DAT_CR_HANDLE ep_next_request(DAT_EVD_HANDLE evd);
/* Connects and is rejected: the endpoint is DISCONNECTED, its Receives are flushed. */
void ep_fail(struct dt_ia *ia, struct dt_ep *ep);
/* Ends a connection between two endpoints of this process and takes both events. */
void ep_unlink(struct dt_ep *a, struct dt_ep *b);

#endif
