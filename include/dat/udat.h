/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header for consumers of the user-level Direct Access Transport API, version 1.2. It declares
 * the user-level part of the API and includes the rest. The calls are in libdat (link with -ldat).
 */
#ifndef _UDAT_H_
#define _UDAT_H_

#include <dat/udat_config.h>
#include <dat/dat_platform_specific.h>

/* dat.h uses these types. */

/* The meaning of a region description, see dat_lmr_create. */
typedef enum dat_mem_type {
	DAT_MEM_TYPE_VIRTUAL = 0,	 /* for_va */
	DAT_MEM_TYPE_LMR = 1,		 /* for_lmr_handle */
	DAT_MEM_TYPE_SHARED_VIRTUAL = 2, /* for_shared_memory */
	DAT_MEM_TYPE_SO_VIRTUAL = 3,	 /* for_va; with strict ordering (Solaris) */
} DAT_MEM_TYPE;

/* The type of the object of a handle, see dat_get_handle_type. */
typedef enum dat_handle_type {
	DAT_HANDLE_TYPE_CR = 0,
	DAT_HANDLE_TYPE_EP = 1,
	DAT_HANDLE_TYPE_EVD = 2,
	DAT_HANDLE_TYPE_IA = 3,
	DAT_HANDLE_TYPE_LMR = 4,
	DAT_HANDLE_TYPE_PSP = 5,
	DAT_HANDLE_TYPE_PZ = 6,
	DAT_HANDLE_TYPE_RMR = 7,
	DAT_HANDLE_TYPE_RSP = 8,
	DAT_HANDLE_TYPE_CNO = 9,
	DAT_HANDLE_TYPE_SRQ = 10,
} DAT_HANDLE_TYPE;

/* State of an EVD: one of the first two, one of the next two, and one configuration. */
typedef enum dat_evd_state {
	DAT_EVD_STATE_ENABLED = 0x01,
	DAT_EVD_STATE_DISABLED = 0x02,
	DAT_EVD_STATE_WAITABLE = 0x04,
	DAT_EVD_STATE_UNWAITABLE = 0x08,
	DAT_EVD_STATE_CONFIG_NOTIFY = 0x10,    /* a stream is unsignalled */
	DAT_EVD_STATE_CONFIG_SOLICITED = 0x20, /* a stream is solicited only */
	DAT_EVD_STATE_CONFIG_THRESHOLD = 0x30, /* thresholds may be used */
} DAT_EVD_STATE;

/* Selects the members of DAT_EVD_PARAM that a query fills. */
typedef enum dat_evd_param_mask {
	DAT_EVD_FIELD_IA_HANDLE = 0x01,
	DAT_EVD_FIELD_EVD_QLEN = 0x02,
	DAT_EVD_FIELD_EVD_STATE = 0x04,
	DAT_EVD_FIELD_CNO = 0x08,
	DAT_EVD_FIELD_EVD_FLAGS = 0x10,
	DAT_EVD_FIELD_ALL = 0x1f,
} DAT_EVD_PARAM_MASK;

typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK;

#include <dat/dat.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef DAT_HANDLE DAT_CNO_HANDLE;

/* Values of an asynchronous EVD handle that are not handles of an EVD of this process. */
#define DAT_EVD_ASYNC_EXISTS ((DAT_EVD_HANDLE)0x1)
#define DAT_EVD_OUT_OF_SCOPE ((DAT_EVD_HANDLE)0x2)

/* The name of a shared memory region, which the consumers that share it choose. */
#define DAT_LMR_COOKIE_SIZE 40
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE];

/* A function that a CNO calls when it is notified. */
typedef void (*DAT_AGENT_FUNC)(DAT_PVOID instance_data, DAT_EVD_HANDLE evd_handle);

/* An agent and its argument. */
typedef struct dat_os_wait_proxy_agent {
	DAT_PVOID instance_data;
	DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;

/* No agent. */
#ifdef __cplusplus
#define DAT_OS_WAIT_PROXY_AGENT_NULL (DAT_OS_WAIT_PROXY_AGENT())
#else
#define DAT_OS_WAIT_PROXY_AGENT_NULL                                                               \
	((DAT_OS_WAIT_PROXY_AGENT){(DAT_PVOID)NULL, (DAT_AGENT_FUNC)NULL})
#endif

/* Shared memory to register: its local address and its common name. */
typedef struct dat_shared_memory {
	DAT_PVOID virtual_address;
	DAT_LMR_COOKIE shared_memory_id;
} DAT_SHARED_MEMORY;

/* Memory to register, by DAT_MEM_TYPE. */
typedef union dat_region_description {
	DAT_PVOID for_va;
	DAT_LMR_HANDLE for_lmr_handle;
	DAT_SHARED_MEMORY for_shared_memory;
} DAT_REGION_DESCRIPTION;

/* Parameters of a memory region, see dat_lmr_query. */
struct dat_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length; /* bytes */
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size; /* bytes */
	DAT_VADDR registered_address;
};

/* Parameters of an EVD, see dat_evd_query. */
struct dat_evd_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COUNT evd_qlen; /* events */
	DAT_EVD_STATE evd_state;
	DAT_CNO_HANDLE cno_handle;
	DAT_EVD_FLAGS evd_flags;
};

/* Parameters of a CNO, see dat_cno_query. */
typedef struct dat_cno_param {
	DAT_IA_HANDLE ia_handle;
	DAT_OS_WAIT_PROXY_AGENT agent;
} DAT_CNO_PARAM;

/* Selects the members of DAT_CNO_PARAM that a query fills. */
typedef enum dat_cno_param_mask {
	DAT_CNO_FIELD_IA_HANDLE = 0x01,
	DAT_CNO_FIELD_AGENT = 0x02,
	DAT_CNO_FIELD_ALL = 0x03,
} DAT_CNO_PARAM_MASK;

/* Whether endpoints of several processes may share a protection zone. */
typedef enum dat_pz_support {
	DAT_PZ_UNIQUE = 0,
	DAT_PZ_SHAREABLE = 1,
} DAT_PZ_SUPPORT;

/* Attributes of a provider, see dat_ia_query. The memory belongs to the caller. */
struct dat_provider_attr {
	char provider_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 provider_version_major;
	DAT_UINT32 provider_version_minor;
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_MEM_TYPE lmr_mem_types_supported; /* union */
	DAT_IOV_OWNERSHIP iov_ownership_on_return;
	DAT_QOS dat_qos_supported;			 /* union */
	DAT_COMPLETION_FLAGS completion_flags_supported; /* union */
	DAT_BOOLEAN is_thread_safe;
	DAT_COUNT max_private_data_size; /* bytes */
	DAT_BOOLEAN supports_multipath;
	DAT_EP_CREATOR_FOR_PSP ep_creator;
	DAT_PZ_SUPPORT pz_support;
	DAT_UINT32 optimal_buffer_alignment; /* bytes */

	/*
	 * The kinds of events that may share an EVD. Rows and columns: software, connection
	 * request, DTO, connection, bind, asynchronous.
	 */
#ifdef __cplusplus
	DAT_BOOLEAN evd_stream_merging_supported[6][6]; /* no const: C++ could not construct it */
#else
	const DAT_BOOLEAN evd_stream_merging_supported[6][6];
#endif
	DAT_BOOLEAN srq_supported;
	DAT_COUNT srq_watermarks_supported;
	DAT_BOOLEAN srq_ep_pz_difference_supported;
	DAT_COUNT srq_info_supported;
	DAT_COUNT ep_recv_info_supported;
	DAT_BOOLEAN lmr_sync_req;
	DAT_BOOLEAN dto_async_return_guaranteed;
	DAT_BOOLEAN rdma_write_for_rdma_read_req;
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
};

/* Selects the members of DAT_PROVIDER_ATTR that a query fills: bits of DAT_PROVIDER_ATTR_MASK. */
#define DAT_PROVIDER_FIELD_PROVIDER_NAME UINT64_C(0x0000001)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR UINT64_C(0x0000002)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR UINT64_C(0x0000004)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR UINT64_C(0x0000008)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR UINT64_C(0x0000010)
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED UINT64_C(0x0000020)
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP UINT64_C(0x0000040)
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED UINT64_C(0x0000080)
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED UINT64_C(0x0000100)
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE UINT64_C(0x0000200)
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE UINT64_C(0x0000400)
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH UINT64_C(0x0000800)
#define DAT_PROVIDER_FIELD_EP_CREATOR UINT64_C(0x0001000)
#define DAT_PROVIDER_FIELD_PZ_SUPPORT UINT64_C(0x0002000)
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT UINT64_C(0x0004000)
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED UINT64_C(0x0008000)
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED UINT64_C(0x0010000)
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED UINT64_C(0x0020000)
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED UINT64_C(0x0040000)
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED UINT64_C(0x0080000)
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED UINT64_C(0x0100000)
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ UINT64_C(0x0200000)
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED UINT64_C(0x0400000)
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ UINT64_C(0x0800000)
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR UINT64_C(0x1000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR UINT64_C(0x2000000)

#define DAT_PROVIDER_FIELD_ALL UINT64_C(0x3ffffff)
#define DAT_PROVIDER_FIELD_NONE UINT64_C(0x0000000)

/* ---- calls: local memory regions ---- */

/*
 * Register memory.
 *
 * Keep the memory mapped until dat_lmr_free. What happens otherwise depends on who copies. If the
 * peer or the kernel copies, RDMA of a peer ends with success or DAT_DTO_ERR_REMOTE_ACCESS, and no
 * signal is raised. On the soft adapters a post, a dequeue or a wait of this process copies to and
 * from the memory too, for example to place a message or RDMA through a ring, and faults as any
 * access does. A handler of the signal may map the memory again and return; leaving the call by a
 * jump is undefined. Threads of the library never fault: the transfer then ends with
 * DAT_DTO_ERR_LOCAL_PROTECTION, an RDMA with DAT_DTO_ERR_REMOTE_ACCESS.
 * The same applies to writing to memory that is registered for it but is not writable. The soft
 * adapters register such memory; a device refuses it.
 * Received bytes become visible in order: when the last byte of a message or of an RDMA Write is
 * visible, so are all others.
 *
 * ia_handle [in]             the instance
 * mem_type [in]              selects the member of region_description
 * region_description [in]    for_va, the start address, for DAT_MEM_TYPE_VIRTUAL and
 *                            DAT_MEM_TYPE_SO_VIRTUAL; for_lmr_handle, a region whose memory is
 *                            registered again, for DAT_MEM_TYPE_LMR; for_shared_memory, address
 *                            and cookie, for DAT_MEM_TYPE_SHARED_VIRTUAL
 * length [in]                bytes, from 1 to max_lmr_block_size; ignored for DAT_MEM_TYPE_LMR
 * pz_handle [in]             its protection zone
 * privileges [in]            DAT_MEM_PRIV_ flags: permitted uses of the memory, local and by peers
 * lmr_handle [out]           the region, valid until dat_lmr_free
 * lmr_context [out]          key for local triplets; may be NULL, and so may those below
 * rmr_context [out]          key for the triplets of peers; 0 without a remote privilege
 * registered_length [out]    bytes registered, at least length
 * registered_address [out]   the first registered address, at or below the start
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_PZ, DAT_INVALID_HANDLE_LMR:
 *     no such object of the instance
 *   DAT_INVALID_PARAMETER / DAT_INVALID_ARG2, 3, 4, 6, 7:
 *     a type that is not defined; NULL, a NULL cookie, or memory that is not completely mapped or,
 *     for a device that writes to it, not writable; 0; a privilege that is not defined; NULL
 *   DAT_INVALID_STATE: DAT_MEM_TYPE_SHARED_VIRTUAL, and the memory is not shared
 *   DAT_MODEL_NOT_SUPPORTED: no such memory type, or a device refuses read-only shared memory
 *   DAT_INSUFFICIENT_RESOURCES:
 *     memory or device objects are exhausted, or a limit of the adapter is reached
 *   DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_MEMORY_REGION:
 *     among others, more bytes than max_lmr_block_size
 * Thread safe. May block while memory is pinned. Specification: memory.md, dat_lmr_create.
 */
extern DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
				 DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
				 DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
				 DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
				 DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
				 DAT_VADDR *registered_address);

/* ---- calls: event dispatchers ---- */

/*
 * Create an EVD (event dispatcher): a queue of events of one or more kinds.
 *
 * ia_handle [in]       the instance
 * evd_min_qlen [in]    minimum number of events, from 1 to max_evd_qlen
 * cno_handle [in]      a CNO to notify, or DAT_HANDLE_NULL
 * evd_flags [in]       the kinds of events that it accepts, at least one DAT_EVD_ flag
 * evd_handle [out]     the EVD, enabled and waitable; valid until dat_evd_free;
 *                      DAT_HANDLE_NULL on failure
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO: no CNO of the instance
 *   DAT_INVALID_PARAMETER / DAT_INVALID_ARG2, 4, 5:
 *     not positive; no flag, or one that is not defined; NULL
 *   DAT_INSUFFICIENT_RESOURCES: memory or EVDs are exhausted
 *   DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_TEVD: longer than max_evd_qlen
 * Thread safe. Does not block. Specification: events.md, dat_evd_create.
 */
extern DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
				 DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags,
				 DAT_EVD_HANDLE *evd_handle);

/*
 * Change the CNO that an EVD notifies.
 *
 * evd_handle [in]    the EVD
 * cno_handle [in]    a CNO of the same instance, or DAT_HANDLE_NULL
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live EVD
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO: no CNO of the instance; nothing is changed
 *   DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_MEMORY: nothing is changed
 * Thread safe. Does not block. Specification: events.md, dat_evd_modify_cno.
 */
extern DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle);

/* ---- calls: consumer notification objects ---- */

/*
 * Create a consumer notification object, with which a thread waits for several EVDs.
 *
 * ia_handle [in]     the instance
 * agent [in]         called once, at the next notification;
 *                    DAT_OS_WAIT_PROXY_AGENT_NULL for none
 * cno_handle [out]   the CNO, valid until dat_cno_free
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_PARAMETER / DAT_INVALID_ARG2, 3: instance data without a function; NULL
 *   DAT_INSUFFICIENT_RESOURCES:
 *     memory or device objects are exhausted, or a limit of the adapter is reached
 * Thread safe. Does not block. Specification: events.md, dat_cno_create.
 */
extern DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
				 DAT_CNO_HANDLE *cno_handle);

/*
 * Replace the agent of a CNO.
 *
 * cno_handle [in]    the CNO
 * agent [in]         as in dat_cno_create
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO: no live CNO
 *   DAT_INVALID_PARAMETER / DAT_INVALID_ARG2: instance data without a function
 * Thread safe. Does not block. Specification: events.md, dat_cno_modify_agent.
 */
extern DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent);

/*
 * Query the parameters of a CNO.
 *
 * cno_handle [in]        the CNO
 * cno_param_mask [in]    DAT_CNO_FIELD_ bits of the members to fill
 * cno_param [out]        filled as selected by the mask
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO: no live CNO
 *   DAT_INVALID_PARAMETER / DAT_INVALID_ARG2: a bit that is not defined
 *   DAT_INVALID_PARAMETER / DAT_INVALID_ARG3: NULL
 * Thread safe. Does not block. Specification: events.md, dat_cno_query.
 */
extern DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK cno_param_mask,
				DAT_CNO_PARAM *cno_param);

/*
 * Destroy a CNO.
 *
 * cno_handle [in]    the CNO; invalid after success
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO: no live CNO
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_CNO_IN_USE:
 *     an EVD refers to it, or a thread waits on it
 * Thread safe. Does not block. Specification: events.md, dat_cno_free.
 */
extern DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno_handle);

/*
 * Wait for a notification of any EVD of a CNO.
 *
 * cno_handle [in]    the CNO; several threads may wait
 * timeout [in]       microseconds; 0 polls, DAT_TIMEOUT_INFINITE waits for ever
 * evd_handle [out]   an EVD that may have events; DAT_HANDLE_NULL if the time has expired, the
 *                    last EVD was freed, or the instance was closed
 *
 * Returns DAT_SUCCESS, or
 *   DAT_QUEUE_EMPTY: the time has expired; without a class bit, as in dat_evd_dequeue
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO: no live CNO
 *   DAT_INVALID_PARAMETER / DAT_INVALID_ARG3: NULL
 *   DAT_INTERRUPTED_CALL: a signal was handled; no notification is consumed
 * Thread safe. Blocks up to the time-out; a cancellation point. Specification: events.md,
 * dat_cno_wait.
 */
extern DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout,
			       DAT_EVD_HANDLE *evd_handle);

/* ---- calls: event dispatchers ---- */

/*
 * Enable an EVD to notify its CNO.
 *
 * evd_handle [in]    the EVD; it may be enabled already
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live EVD
 * Thread safe. Does not block. Specification: events.md, dat_evd_enable.
 */
extern DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd_handle);

/*
 * Wait until an EVD holds a number of events, and take the first one.
 *
 * evd_handle [in]       the EVD; one waiter at a time
 * timeout [in]          microseconds; 0 polls, DAT_TIMEOUT_INFINITE waits for ever
 * threshold [in]        events, from 1 to the length of the queue; 1 if a stream of the EVD is
 *                       unsignalled or solicited only
 * event [out]           the first event, removed from the queue
 * n_more_events [out]   events left; after a time-out or interruption, events in the queue
 *
 * Returns DAT_SUCCESS, or
 *   DAT_TIMEOUT_EXPIRED: too few events arrived in time; none is taken
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live EVD
 *   DAT_INVALID_PARAMETER / DAT_INVALID_ARG3, 4, 5: out of range; NULL; NULL
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_EVD_WAITER, DAT_INVALID_STATE_EVD_UNWAITABLE:
 *     another thread waits; the EVD is or becomes unwaitable
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD:
 *     a threshold above 1, and a stream of the EVD is unsignalled or solicited only
 *   DAT_ABORT: the EVD or its instance was destroyed during the wait
 *   DAT_INTERRUPTED_CALL: a signal was handled; no event is taken
 * Thread safe. Blocks up to the time-out; a cancellation point. Specification: events.md,
 * dat_evd_wait.
 */
extern DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			       DAT_EVENT *event, DAT_COUNT *n_more_events);

/*
 * Disable notifications from an EVD to its CNO. Events are still queued.
 *
 * evd_handle [in]    the EVD; it may be disabled already
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live EVD
 * Thread safe. Does not block. Specification: events.md, dat_evd_disable.
 */
extern DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd_handle);

/*
 * Make dat_evd_wait on an EVD fail, for a thread that is waiting too.
 *
 * evd_handle [in]    the EVD
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live EVD
 * Thread safe. Does not block. Specification: events.md, dat_evd_set_unwaitable.
 */
extern DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle);

/*
 * Allow dat_evd_wait on an EVD again.
 *
 * evd_handle [in]    the EVD
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live EVD
 * Thread safe. Does not block. Specification: events.md, dat_evd_clear_unwaitable.
 */
extern DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle);

#ifdef __cplusplus
}
#endif

#endif /* _UDAT_H_ */
