/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenDAT's extensions of uDAPL 1.2. They are not part of the specification, so a program that uses
 * them requires OpenDAT.
 */
#ifndef _OPENDAT_H_
#define _OPENDAT_H_

#include <dat/udat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- calls: consumer notification objects ---- */

/*
 * Return a file descriptor that is readable while a CNO has a pending notification. It is for event
 * loops with poll, select or epoll.
 *
 * When it is readable, call dat_cno_wait with timeout 0 until it returns DAT_QUEUE_EMPTY, and take
 * all events of each EVD that it returns. This clears the descriptor.
 *
 * cno_handle [in]    the CNO
 * fd [out]           the descriptor, the same at every call. The library owns it and closes it
 *                    when the CNO is freed. Only wait for readability; do not read from it
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO: no live CNO
 *   DAT_INVALID_PARAMETER, fd: NULL
 *   DAT_MODEL_NOT_SUPPORTED: the provider is not one of OpenDAT's
 *   DAT_INSUFFICIENT_RESOURCES: no descriptor is available
 * Thread safe. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_cno_fd(DAT_CNO_HANDLE cno_handle, int *fd);

/* ---- calls: endpoints ---- */

/*
 * Fill in the attributes that an endpoint gets by default.
 *
 * Change what the program needs and pass the result to dat_ep_create. The values are those that
 * dat_ep_create uses if it gets no attributes and an EVD for receives and for requests; without
 * such an EVD set max_recv_dtos or max_request_dtos to 0.
 *
 * ia_handle [in]     the instance
 * ep_attr [out]      the attributes; all members are set
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open instance
 *   DAT_INVALID_PARAMETER, ep_attr: NULL
 *   DAT_MODEL_NOT_SUPPORTED: the provider is not one of this version of OpenDAT
 * Thread safe. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_ep_attr_default(DAT_IA_HANDLE ia_handle, DAT_EP_ATTR *ep_attr);

/* ---- types: memory ---- */

/* How dat_opendat_mem_alloc allocates; a sum. */
typedef enum dat_opendat_mem_flags {
	DAT_OPENDAT_MEM_DEFAULT = 0, /* ordinary pages */
	/* huge pages of the system's default size, which must be reserved
	   (/proc/sys/vm/nr_hugepages) */
	DAT_OPENDAT_MEM_HUGE = 0x1
} DAT_OPENDAT_MEM_FLAGS;

/* ---- calls: memory ---- */

/*
 * Allocate memory on which all copy paths of the soft adapters are fast.
 *
 * It is a memory file that is mapped shared and sealed against a change of its size. So a peer of
 * the same user can map it and read or write it without a system call; see opendat(7). The memory
 * is zeroed and begins at a page. Register it by dat_lmr_create with DAT_MEM_TYPE_VIRTUAL, and free
 * the region before the memory. It is also useful on RDMA devices, where huge pages save entries in
 * the tables of the device. A child after fork shares it with its parent.
 *
 * length [in]        bytes; they are rounded up to whole pages
 * flags [in]         DAT_OPENDAT_MEM_DEFAULT or DAT_OPENDAT_MEM_HUGE
 * memory [out]       the address
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_PARAMETER, length: 0, or more than the address space has
 *   DAT_INVALID_PARAMETER, flags: a bit that is not defined
 *   DAT_INVALID_PARAMETER, memory: NULL
 *   DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_MEMORY: no memory, no descriptor, not enough huge
 *     pages, or more than RLIMIT_FSIZE
 * Thread safe. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_mem_alloc(DAT_VLEN length, DAT_OPENDAT_MEM_FLAGS flags,
					DAT_PVOID *memory);

/*
 * Free memory of dat_opendat_mem_alloc.
 *
 * memory [in]        the address that dat_opendat_mem_alloc returned
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_PARAMETER, memory: no address that dat_opendat_mem_alloc returned, or freed already
 * Thread safe. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_mem_free(DAT_PVOID memory);

/* ---- calls: names ---- */

/*
 * Return the name of an event, such as "DAT_CONNECTION_EVENT_BROKEN".
 *
 * The text is constant. A number that is no event has the name "unknown".
 *
 * event_number [in]  the number
 *
 * Thread safe. Does not block. No part of the specification.
 */
extern const char *dat_opendat_event_name(DAT_EVENT_NUMBER event_number);

/*
 * Return the name of a completion status, such as "DAT_DTO_ERR_REMOTE_ACCESS".
 *
 * The text is constant. A value that is no status has the name "unknown".
 *
 * status [in]        the status of a data transfer or of a bind
 *
 * Thread safe. Does not block. No part of the specification.
 */
extern const char *dat_opendat_dto_status_name(DAT_DTO_COMPLETION_STATUS status);

/*
 * Return the name of the state of an endpoint, such as "DAT_EP_STATE_CONNECTED".
 *
 * The text is constant. A value that is no state has the name "unknown".
 *
 * ep_state [in]      the state
 *
 * Thread safe. Does not block. No part of the specification.
 */
extern const char *dat_opendat_ep_state_name(DAT_EP_STATE ep_state);

/*
 * Return the name of the state of an SRQ, such as "DAT_SRQ_STATE_ERROR".
 *
 * The text is constant. A value that is no state has the name "unknown".
 *
 * srq_state [in]     the state
 *
 * Thread safe. Does not block. No part of the specification.
 */
extern const char *dat_opendat_srq_state_name(DAT_SRQ_STATE srq_state);

/* ---- types: peers ---- */

/* What is known of a peer. */
typedef enum dat_opendat_peer_flags {
	/* uid and gid are known */
	DAT_OPENDAT_PEER_USER = 0x1,
	/* pid is known; it is not for a process of another PID namespace */
	DAT_OPENDAT_PEER_PROCESS = 0x2,
	/* the kernel has named uid as the user of the process, with a message of this connection */
	DAT_OPENDAT_PEER_PROVEN = 0x4,
	/* the connection goes over TCP, so that the peer may be on another host; nothing else is
	 * known of it. Without this flag it goes over shared memory */
	DAT_OPENDAT_PEER_TCP = 0x8
} DAT_OPENDAT_PEER_FLAGS;

/* Later versions may add members at the end. */
typedef struct dat_opendat_peer_param {
	DAT_UINT32 size;  /* set by the caller to sizeof(DAT_OPENDAT_PEER) */
	DAT_UINT32 flags; /* DAT_OPENDAT_PEER_FLAGS */
	DAT_UINT32 uid;	  /* all bits set if it is not known */
	DAT_UINT32 gid;	  /* all bits set if it is not known */
	DAT_UINT32 pid;	  /* 0 if it is not known */
} DAT_OPENDAT_PEER;

/* ---- calls: peers ---- */

/*
 * Tell which process is at the other end of a connection or of a connection request.
 *
 * This also tells which path the connection takes: shared memory, or TCP.
 *
 * Over shared memory the kernel names the process and its user with the request, or with the answer
 * to it: DAT_OPENDAT_PEER_PROVEN. A process can change its user after that.
 *
 * handle [in]        the endpoint, or the connection request
 * peer [inout]       the process: its uid, gid and pid, and flags that say which of them are known:
 *                    DAT_OPENDAT_PEER_USER, _PROCESS, _PROVEN, _TCP. Set peer->size to
 *                    sizeof(DAT_OPENDAT_PEER) before the call
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live endpoint or connection request
 *   DAT_INVALID_PARAMETER, peer: NULL, or peer->size is too small
 *   DAT_INVALID_STATE: the endpoint is not connected; the subtype is its state
 *   DAT_MODEL_NOT_SUPPORTED: an RDMA device, which knows no processes; or the provider is not one
 *     of this version of OpenDAT
 * Thread safe. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_peer(DAT_HANDLE handle, DAT_OPENDAT_PEER *peer);

/* ---- types: checks ---- */

/*
 * What the provider that checks reports. The memory is valid during the call of the handler. Later
 * versions may add members at the end.
 */
typedef struct dat_opendat_check_report_param {
	const char *rule;	 /* its name, for example "send-changed" */
	const char *requirement; /* its row in docs/spec */
	const char *call;	 /* the call that showed it */
	DAT_HANDLE handle;	 /* the object concerned, or DAT_HANDLE_NULL */
	const char *text;	 /* the whole report, of several lines */
} DAT_OPENDAT_CHECK_REPORT;

/* A function of the program that takes reports. It may be called in any call and any thread. */
typedef void (*DAT_OPENDAT_CHECK_HANDLER)(const DAT_OPENDAT_CHECK_REPORT *report,
					  DAT_PVOID context);

/* ---- calls: checks ---- */

/*
 * Give the reports of the provider that checks to a function of the program.
 *
 * Without it they are written to standard error. The function must not call the library. It works
 * in programs that run without that provider, too, and is never called then.
 *
 * handler [in]       the function, not NULL
 * context [in]       passed to it
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_PARAMETER, handler: NULL
 * Thread safe. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_check_handler(DAT_OPENDAT_CHECK_HANDLER handler, DAT_PVOID context);

#ifdef __cplusplus
}
#endif

#ifdef DAT_CXX_FLAGS
DAT_CXX_FLAGS(DAT_OPENDAT_PEER_FLAGS, 0x0fu);
#endif

#endif
