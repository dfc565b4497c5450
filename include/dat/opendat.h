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

/* ---- types: transfers ---- */

/* The privilege of a region or an RMR that peers may change by atomic operations. */
#define DAT_OPENDAT_MEM_PRIV_REMOTE_ATOMIC ((DAT_MEM_PRIV_FLAGS)0x40)

/* The operation that a completion is of. */
typedef enum dat_opendat_op {
	DAT_OPENDAT_OP_SEND = 1,	       /* a Send */
	DAT_OPENDAT_OP_SEND_INVALIDATE = 2,    /* a Send that invalidates a context of the peer */
	DAT_OPENDAT_OP_RDMA_WRITE = 3,	       /* an RDMA Write */
	DAT_OPENDAT_OP_RDMA_WRITE_IMMED = 4,   /* an RDMA Write with immediate data */
	DAT_OPENDAT_OP_RDMA_READ = 5,	       /* an RDMA Read */
	DAT_OPENDAT_OP_FETCH_AND_ADD = 6,      /* an atomic addition */
	DAT_OPENDAT_OP_CMP_AND_SWAP = 7,       /* an atomic comparison */
	DAT_OPENDAT_OP_RECEIVE = 8,	       /* a Receive of a Send */
	DAT_OPENDAT_OP_RECEIVE_IMMED = 9,      /* a Receive of immediate data */
	DAT_OPENDAT_OP_RECEIVE_INVALIDATE = 10 /* a Receive of a Send that has invalidated one */
} DAT_OPENDAT_OP;

/* What a completion tells beyond DAT 1.2. Later versions may add members at the end. */
typedef struct dat_opendat_dto_data_param {
	DAT_UINT32 size;      /* set by the caller to sizeof(DAT_OPENDAT_DTO_DATA) */
	DAT_UINT32 operation; /* DAT_OPENDAT_OP */
	/* the immediate data, or the context that was invalidated; 0 for other operations */
	DAT_UINT32 value;
} DAT_OPENDAT_DTO_DATA;

/* ---- calls: transfers ---- */

/*
 * Let the peer of an endpoint send immediate data.
 *
 * Without this call the peer's post is refused, because an event of DAT 1.2 does not show the data.
 * Call it before the connection is made; it holds for every later connection of the endpoint.
 *
 * ep_handle [in]     the endpoint
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_STATE: the endpoint is connecting or has been connected; the subtype is its state
 *   DAT_MODEL_NOT_SUPPORTED: the provider is not one of this version of OpenDAT
 * Calls are serialized. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_ep_take_immediate(DAT_EP_HANDLE ep_handle);

/*
 * Post an RDMA Write with 32 bits of immediate data.
 *
 * It writes as dat_ep_post_rdma_write does. Then it completes a Receive of the peer, whose length is
 * that of the Write. dat_opendat_dto_data returns the data to a peer of DAT 1.2, which must have
 * called dat_opendat_ep_take_immediate; a program of DAT 2.0 needs no call.
 * It is refused for the reasons of dat_ep_post_rdma_write, too.
 *
 * ep_handle [in]        the endpoint
 * num_segments [in]     entries of local_iov; 0 sends the immediate data alone
 * local_iov [in]        the segments to write
 * user_cookie [in]      returned in the completion event
 * remote_iov [in]       where to write
 * immediate_data [in]   passed to the peer, in the byte order of its host
 * completion_flags [in] flags of a Send
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, num_segments: negative, or more than the endpoint allows
 *   DAT_INVALID_PARAMETER, local_iov: NULL with segments, or too long
 *   DAT_INVALID_PARAMETER, remote_iov: NULL
 *   DAT_INVALID_PARAMETER, completion_flags: a bit that is not allowed
 *   DAT_MODEL_NOT_SUPPORTED: the peer or the path to it does not take immediate data, or the
 *     provider is not one of this version of OpenDAT
 * Calls are serialized. Does not block. No part of the specification.
 */
extern DAT_RETURN
dat_opendat_ep_post_rdma_write_immed(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				     const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				     const DAT_RMR_TRIPLET *remote_iov, DAT_UINT32 immediate_data,
				     DAT_COMPLETION_FLAGS completion_flags);

/*
 * Post an atomic addition to 8 bytes of the peer.
 *
 * The value before the addition comes into the local segment. The remote region or RMR needs
 * DAT_OPENDAT_MEM_PRIV_REMOTE_ATOMIC. The operation counts as an RDMA Read. Its completion has the
 * length 8.
 * It is refused for the reasons of dat_ep_post_rdma_read, too.
 *
 * ep_handle [in]        the endpoint
 * add_value [in]        added modulo 2^64, in the byte order of the peer's host
 * local_iov [in]        one segment of at least 8 bytes
 * user_cookie [in]      returned in the completion event
 * remote_iov [in]       at least 8 bytes, at a multiple of 8
 * completion_flags [in] flags of an RDMA Read
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, local_iov: NULL
 *   DAT_INVALID_PARAMETER, remote_iov: NULL, or its address is not a multiple of 8
 *   DAT_INVALID_PARAMETER, completion_flags: a bit that is not allowed
 *   DAT_LENGTH_ERROR: a segment has less than 8 bytes
 *   DAT_MODEL_NOT_SUPPORTED: the peer or the path to it has no atomic operations, or the provider
 *     is not one of this version of OpenDAT
 * Calls are serialized. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_ep_post_fetch_and_add(DAT_EP_HANDLE ep_handle, DAT_UINT64 add_value,
						    const DAT_LMR_TRIPLET *local_iov,
						    DAT_DTO_COOKIE user_cookie,
						    const DAT_RMR_TRIPLET *remote_iov,
						    DAT_COMPLETION_FLAGS completion_flags);

/*
 * Post an atomic comparison of 8 bytes of the peer.
 *
 * They are replaced if they are equal. The value before comes into the local segment either way. The rules are those of
 * dat_opendat_ep_post_fetch_and_add.
 * It is refused for the reasons of dat_ep_post_rdma_read, too.
 *
 * ep_handle [in]        the endpoint
 * compare_value [in]    what the 8 bytes are compared with
 * swap_value [in]       what is stored if they are equal
 * local_iov [in]        one segment of at least 8 bytes
 * user_cookie [in]      returned in the completion event
 * remote_iov [in]       at least 8 bytes, at a multiple of 8
 * completion_flags [in] flags of an RDMA Read
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, local_iov: NULL
 *   DAT_INVALID_PARAMETER, remote_iov: NULL, or its address is not a multiple of 8
 *   DAT_INVALID_PARAMETER, completion_flags: a bit that is not allowed
 *   DAT_LENGTH_ERROR: a segment has less than 8 bytes
 *   DAT_MODEL_NOT_SUPPORTED: the peer or the path to it has no atomic operations, or the provider
 *     is not one of this version of OpenDAT
 * Calls are serialized. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_ep_post_cmp_and_swap(DAT_EP_HANDLE ep_handle,
						   DAT_UINT64 compare_value, DAT_UINT64 swap_value,
						   const DAT_LMR_TRIPLET *local_iov,
						   DAT_DTO_COOKIE user_cookie,
						   const DAT_RMR_TRIPLET *remote_iov,
						   DAT_COMPLETION_FLAGS completion_flags);

/*
 * Post a Send that invalidates a context of the peer.
 *
 * The message is sent as by dat_ep_post_send. Before its Receive completes, the peer's context is
 * invalid: that of an RMR is as after an unbind, and a region is closed to peers for good. A context
 * that cannot be invalidated breaks the connection.
 * It is refused for the reasons of dat_ep_post_send, too.
 *
 * ep_handle [in]        the endpoint
 * num_segments [in]     entries of local_iov
 * local_iov [in]        the segments to send
 * user_cookie [in]      returned in the completion event
 * completion_flags [in] flags of a Send
 * rmr_context [in]      the context to invalidate
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, num_segments: negative, or more than the endpoint allows
 *   DAT_INVALID_PARAMETER, local_iov: NULL with segments, or too long
 *   DAT_INVALID_PARAMETER, completion_flags: a bit that is not allowed
 *   DAT_MODEL_NOT_SUPPORTED: the peer or the path to it does not take such messages, or the
 *     provider is not one of this version of OpenDAT
 * Calls are serialized. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_ep_post_send_invalidate(DAT_EP_HANDLE ep_handle,
						      DAT_COUNT num_segments,
						      const DAT_LMR_TRIPLET *local_iov,
						      DAT_DTO_COOKIE user_cookie,
						      DAT_COMPLETION_FLAGS completion_flags,
						      DAT_RMR_CONTEXT rmr_context);

/*
 * Return what the completion of a transfer tells beyond DAT 1.2.
 *
 * The data are in parts of the event that have no name. Pass the event that dat_evd_dequeue or
 * dat_evd_wait has filled in: an assignment to another event may leave them behind.
 *
 * event [in]         a DAT_DTO_COMPLETION_EVENT; its EVD must be live
 * data [inout]       the operation, and the value that came with it. Set data->size to
 *                    sizeof(DAT_OPENDAT_DTO_DATA) before the call
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE: the event is of no live EVD
 *   DAT_INVALID_PARAMETER, event: NULL, or no such completion
 *   DAT_INVALID_PARAMETER, data: NULL, or data->size is too small
 *   DAT_MODEL_NOT_SUPPORTED: the provider is not one of this version of OpenDAT
 * Thread safe. Does not block. No part of the specification.
 */
extern DAT_RETURN dat_opendat_dto_data(const DAT_EVENT *event, DAT_OPENDAT_DTO_DATA *data);

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
