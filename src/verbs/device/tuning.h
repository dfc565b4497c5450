// SPDX-License-Identifier: BSD-2-Clause
/*
 * The times and counts that steer the provider's behaviour, with the reason for each. What a user
 * may want to change is a setting instead (core/base/settings.h).
 */
#ifndef VERBS_TUNING_H
#define VERBS_TUNING_H

#include <stdint.h>

#define VRB_NS_PER_MS UINT64_C(1000000)

/* --- completion queues --- */

/* Entries: enough for the default queues of some 200 endpoints, in half a MiB. */
#define VRB_CQ_ENTRIES 8192u
#define VRB_CQ_ENTRIES_SIW 32768u /* 1 MB: see vrb_cq_create */
/* Completions of one poll: 64 bytes each, and more save nothing. */
#define VRB_POLL_BATCH 16
/* Completions that one call takes from a queue, so that other queues get their turn. */
#define VRB_POLL_MAX 256
/* Attempts to poll each queue at a time when no other thread does. */
#define VRB_ARRIVED_TRIES 100
/* Connections whose blocked binds one poll tries again. The rest follow with the next one. */
#define VRB_RETRIES_MAX 8u
/* A blocked bind is tried again so much later even if no thread polls. */
#define VRB_BLOCKED_NS VRB_NS_PER_MS

/* --- posts --- */

/* Work requests and Receives posted with one call: their scatter lists are on the stack. */
#define VRB_BATCH 8u
#define VRB_RECV_BATCH 16u
/* siw: posts until the action of SIGPIPE is read again, which takes a system call. */
#define VRB_PIPE_CHECK_AFTER 64u
/* Binds of one window. The device counts keys in 8 bits; binding and unbinding take one each. */
#define VRB_BINDS_MAX 100u

/* --- the service thread --- */

/* The first interval between two checks of a consumer that polls, and the longest. Each is twice
 * the one before, because a check takes processor time from the thread that polls. */
#define VRB_TICK_MS 1
#define VRB_TICK_MAX_MS 32u
/* Events of the connection manager in a row, so that completions get their turn. */
#define VRB_CM_EVENTS_MAX 64

/* --- set-up --- */

/* How long the connection manager may resolve the address, and the route. */
#define VRB_RESOLVE_MS 5000
/* Requests that wait in the kernel for a listener. */
#define VRB_BACKLOG 512
/* iWARP: local ports tried because TCP uses the one before. */
#define VRB_LOCAL_PORTS_MAX 200
/* Ports that are tried to find a free qualifier. */
#define VRB_CHOOSE_MAX 1024
/* First parts of private data that wait for the rest, for each listener. */
#define VRB_PARTS 64u
/*
 * siw does not read what arrives between its answer and the end of its set-up until more bytes
 * arrive. So the active side sends a Write of length 0 after each of these pauses, until the peer
 * has sent something.
 */
#define VRB_CONFIRM_PAUSES 3u
#define VRB_CONFIRM_PAUSES_MS                                                                      \
	{                                                                                          \
		10, 100, 1000                                                                      \
	}

/* Values of the InfiniBand attributes. 12 means 0.64 ms until a message that found no Receive is
 * sent again. */
#define VRB_RETRY_COUNT 7
#define VRB_RNR_FOR_EVER 7
#define VRB_RNR_TIMER_SHORT 12

/* --- the end --- */

/* How long flushes may take to arrive. */
#define VRB_DRAIN_NS (300 * VRB_NS_PER_MS)
/*
 * How long a device may take to complete the SRQ buffers that the queue pair holds, and how long
 * after it has reported that it holds none. Some devices never report it (rxe and siw of Linux
 * 6.1), and one reports it early (bnxt_re).
 */
#define VRB_DRAIN_SRQ_NS (100 * VRB_NS_PER_MS)
#define VRB_DRAIN_LEFT_NS (2 * VRB_NS_PER_MS)
/* iWARP: how long the connection manager may take to explain a flush. */
#define VRB_SILENT_NS (500 * VRB_NS_PER_MS)
/* iWARP: longer than the kernel's connection manager waits for an answer. */
#define VRB_ANSWER_NS (60000 * VRB_NS_PER_MS)

#endif
