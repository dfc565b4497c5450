/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header for consumers of the user-level Direct Access Transport API, version 1.2. It declares
 * the user-level part of the API and includes the rest. The calls are in libdat (link with -ldat).
 */
#ifndef _UDAT_H_
#define _UDAT_H_

#include <dat/udat_config.h>
#include <dat/dat_platform_specific.h>

/* ---- types that dat.h uses ---- */

/*
 * Kinds of memory to register: the meaning of DAT_REGION_DESCRIPTION in dat_lmr_create. The
 * providers of OpenDAT have all of them.
 *
 * Specification: memory.md, dat_lmr_create.
 */
typedef enum dat_mem_type {
	/* memory of this process, whose start is for_va: the ordinary case */
	DAT_MEM_TYPE_VIRTUAL = 0,
	/* the memory of the region for_lmr_handle once more, with a protection zone and privileges
	 * of its own; the length is ignored */
	DAT_MEM_TYPE_LMR = 1,
	/* memory that processes share, for_shared_memory: its start in this process, and the cookie
	 * by which all of them name it */
	DAT_MEM_TYPE_SHARED_VIRTUAL = 2,
	/* as DAT_MEM_TYPE_VIRTUAL, with strict ordering, which OpenDAT always has; for sources
	 * written for Solaris */
	DAT_MEM_TYPE_SO_VIRTUAL = 3,
} DAT_MEM_TYPE;

/* Types of objects, see dat_get_handle_type. */
typedef enum dat_handle_type {
	DAT_HANDLE_TYPE_CR = 0,	  /* connection request */
	DAT_HANDLE_TYPE_EP = 1,	  /* endpoint */
	DAT_HANDLE_TYPE_EVD = 2,  /* event dispatcher */
	DAT_HANDLE_TYPE_IA = 3,	  /* instance of an interface adapter */
	DAT_HANDLE_TYPE_LMR = 4,  /* local memory region */
	DAT_HANDLE_TYPE_PSP = 5,  /* public service point */
	DAT_HANDLE_TYPE_PZ = 6,	  /* protection zone */
	DAT_HANDLE_TYPE_RMR = 7,  /* remote memory region */
	DAT_HANDLE_TYPE_RSP = 8,  /* reserved service point */
	DAT_HANDLE_TYPE_CNO = 9,  /* consumer notification object */
	DAT_HANDLE_TYPE_SRQ = 10, /* shared receive queue */
} DAT_HANDLE_TYPE;

/*
 * The state of an EVD, a sum of bits, see dat_evd_query. It has one of DAT_EVD_STATE_ENABLED and
 * DAT_EVD_STATE_DISABLED, and one of DAT_EVD_STATE_WAITABLE and DAT_EVD_STATE_UNWAITABLE. A new EVD
 * is enabled and waitable. Test the lower four bits only: other providers may set a configuration
 * too.
 *
 * Specification: events.md, dat_evd_query.
 */
typedef enum dat_evd_state {
	DAT_EVD_STATE_ENABLED = 0x01,	 /* events notify the CNO, see dat_evd_enable */
	DAT_EVD_STATE_DISABLED = 0x02,	 /* events do not notify the CNO, see dat_evd_disable */
	DAT_EVD_STATE_WAITABLE = 0x04,	 /* dat_evd_wait is allowed, see dat_evd_clear_unwaitable */
	DAT_EVD_STATE_UNWAITABLE = 0x08, /* dat_evd_wait fails, see dat_evd_set_unwaitable */
	/* configuration: an endpoint uses DAT_COMPLETION_UNSIGNALLED_FLAG; not set by OpenDAT */
	DAT_EVD_STATE_CONFIG_NOTIFY = 0x10,
	/* configuration: an endpoint uses DAT_COMPLETION_SOLICITED_WAIT_FLAG; not set by OpenDAT */
	DAT_EVD_STATE_CONFIG_SOLICITED = 0x20,
	/* configuration: thresholds above 1 may be used; not set by OpenDAT */
	DAT_EVD_STATE_CONFIG_THRESHOLD = 0x30,
} DAT_EVD_STATE;

/* Selects the members of DAT_EVD_PARAM that dat_evd_query fills. */
typedef enum dat_evd_param_mask {
	DAT_EVD_FIELD_IA_HANDLE = 0x01,
	DAT_EVD_FIELD_EVD_QLEN = 0x02,
	DAT_EVD_FIELD_EVD_STATE = 0x04,
	DAT_EVD_FIELD_CNO = 0x08, /* cno_handle */
	DAT_EVD_FIELD_EVD_FLAGS = 0x10,
	DAT_EVD_FIELD_ALL = 0x1f,
} DAT_EVD_PARAM_MASK;

/* Selects the members of DAT_PROVIDER_ATTR that dat_ia_query fills. */
typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK; /* the sum of bits */

#define DAT_PROVIDER_FIELD_PROVIDER_NAME UINT64_C(0x0000001)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR UINT64_C(0x0000002)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR UINT64_C(0x0000004)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR UINT64_C(0x0000008)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR UINT64_C(0x0000010)
/* lmr_mem_types_supported */
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED UINT64_C(0x0000020)
/* iov_ownership_on_return */
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

#include <dat/dat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types of user-level consumers ---- */

/*
 * The handle of a CNO, a consumer notification object. With it a thread waits for several EVDs. See
 * DAT_HANDLE for the rules of handles.
 */
typedef DAT_HANDLE DAT_CNO_HANDLE;

/*
 * Values of an asynchronous EVD handle that are not handles of an EVD.
 *
 * Specification: registry.md, dat_ia_open.
 */
#define DAT_EVD_ASYNC_EXISTS ((DAT_EVD_HANDLE)0x1) /* passed to dat_ia_open: use no EVD */
#define DAT_EVD_OUT_OF_SCOPE ((DAT_EVD_HANDLE)0x2) /* returned then, also by dat_ia_query */

/*
 * The name of shared memory, which the processes that share it choose. It is a pointer to
 * DAT_LMR_COOKIE_SIZE bytes, which dat_lmr_create copies. The bytes may have any value.
 *
 * The name is for the program: dat_lmr_query returns it. OpenDAT compares it with nothing. Each
 * registration is of the mapping and the length that it is given, also if another one has the same
 * name and a different length, or the same memory and a different name.
 */
#define DAT_LMR_COOKIE_SIZE 40			     /* the number of bytes */
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE]; /* the type */

/*
 * A function that a CNO calls when it is notified, see dat_cno_create.
 *
 * It is called once with its instance data and the EVD that notified, or with DAT_HANDLE_NULL if
 * the last EVD was freed or the instance was closed. After the call the CNO has no agent;
 * dat_cno_modify_agent sets it again, also in the function itself. Any thread may call it, of the
 * program or of the library. It may make every call except a wait that blocks. Calls of one CNO's
 * agent never overlap.
 *
 * Specification: events.md, dat_cno_create.
 */
typedef void (*DAT_AGENT_FUNC)(DAT_PVOID instance_data, DAT_EVD_HANDLE evd_handle);

/* An agent of a CNO: a function and its argument, see dat_cno_create. */
typedef struct dat_os_wait_proxy_agent {
	DAT_PVOID instance_data; /* passed to the function; NULL if there is no function */
	/* called at the next notification; NULL for no agent */
	DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;
#ifdef __cplusplus
#define DAT_OS_WAIT_PROXY_AGENT_NULL (DAT_OS_WAIT_PROXY_AGENT())
#else
/* no agent */
#define DAT_OS_WAIT_PROXY_AGENT_NULL                                                               \
	((DAT_OS_WAIT_PROXY_AGENT){(DAT_PVOID)NULL, (DAT_AGENT_FUNC)NULL})
#endif

/*
 * Shared memory to register: its local address and its common name. Each process registers its own
 * mapping; DAT_LMR_COOKIE says what the name means.
 */
typedef struct dat_shared_memory {
	DAT_PVOID virtual_address;	 /* where it begins in this process */
	DAT_LMR_COOKIE shared_memory_id; /* its name, not NULL */
} DAT_SHARED_MEMORY;

/* Memory to register, an argument of dat_lmr_create. DAT_MEM_TYPE selects the member. */
typedef union dat_region_description {
	DAT_PVOID for_va; /* the start, for DAT_MEM_TYPE_VIRTUAL and DAT_MEM_TYPE_SO_VIRTUAL */
	DAT_LMR_HANDLE for_lmr_handle;	     /* a region, for DAT_MEM_TYPE_LMR */
	DAT_SHARED_MEMORY for_shared_memory; /* for DAT_MEM_TYPE_SHARED_VIRTUAL */
} DAT_REGION_DESCRIPTION;

/*
 * Parameters of a memory region, see dat_lmr_query.
 *
 * Specification: memory.md, dat_lmr_query.
 */
struct dat_lmr_param {
	DAT_IA_HANDLE ia_handle; /* the instance */
	DAT_MEM_TYPE mem_type;	 /* the kind of memory that was asked for */
	/* the memory that was asked for. A cookie in it is a copy, valid while the region exists */
	DAT_REGION_DESCRIPTION region_desc;
	/* bytes asked for; of a copy of a region, the length of that region */
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;      /* the protection zone */
	DAT_MEM_PRIV_FLAGS mem_priv;  /* the permitted uses */
	DAT_LMR_CONTEXT lmr_context;  /* the key for local triplets */
	DAT_RMR_CONTEXT rmr_context;  /* the key for peers; 0 without a remote privilege */
	DAT_VLEN registered_size;     /* bytes registered, at least length */
	DAT_VADDR registered_address; /* the first registered address */
};

/*
 * Parameters of an EVD, see dat_evd_query.
 *
 * Specification: events.md, dat_evd_query.
 */
struct dat_evd_param {
	DAT_IA_HANDLE ia_handle;   /* the instance */
	DAT_COUNT evd_qlen;	   /* events that the queue can hold */
	DAT_EVD_STATE evd_state;   /* enabled or not, waitable or not */
	DAT_CNO_HANDLE cno_handle; /* the CNO that it notifies, or DAT_HANDLE_NULL */
	DAT_EVD_FLAGS evd_flags;   /* the kinds of events that it accepts */
};

/* Parameters of a CNO, see dat_cno_query. */
typedef struct dat_cno_param {
	DAT_IA_HANDLE ia_handle;       /* the instance */
	DAT_OS_WAIT_PROXY_AGENT agent; /* DAT_OS_WAIT_PROXY_AGENT_NULL if none is set */
} DAT_CNO_PARAM;

/* Selects the members of DAT_CNO_PARAM that dat_cno_query fills. */
typedef enum dat_cno_param_mask {
	DAT_CNO_FIELD_IA_HANDLE = 0x01,
	DAT_CNO_FIELD_AGENT = 0x02,
	DAT_CNO_FIELD_ALL = 0x03,
} DAT_CNO_PARAM_MASK;

/* Whether several instances may share a protection zone. */
typedef enum dat_pz_support {
	DAT_PZ_UNIQUE = 0,    /* no; the value with the providers of OpenDAT */
	DAT_PZ_SHAREABLE = 1, /* yes */
} DAT_PZ_SUPPORT;

/*
 * Attributes of a provider, see dat_ia_query. They never change while the instance is open. The
 * memory of the structure belongs to the caller. The values that are given here are those of the
 * providers of OpenDAT; dat_info(1) shows them for each adapter.
 *
 * Specification: registry.md, dat_ia_query.
 */
struct dat_provider_attr {
	char provider_name[DAT_NAME_MAX_LENGTH]; /* "OpenDAT" */
	DAT_UINT32 provider_version_major;	 /* version of the provider */
	DAT_UINT32 provider_version_minor;	 /* version of the provider */
	DAT_UINT32 dapl_version_major;		 /* version of the API: 1 */
	DAT_UINT32 dapl_version_minor;		 /* version of the API: 2 */
	/* the values of DAT_MEM_TYPE, combined by or: 3, which stands for all */
	DAT_MEM_TYPE lmr_mem_types_supported;
	DAT_IOV_OWNERSHIP iov_ownership_on_return; /* DAT_IOV_CONSUMER */
	DAT_QOS dat_qos_supported;		   /* combined by or: DAT_QOS_BEST_EFFORT */
	/* the flags that posts can use, combined by or: DAT_COMPLETION_SUPPRESS_FLAG,
	 * DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG and
	 * DAT_COMPLETION_BARRIER_FENCE_FLAG */
	DAT_COMPLETION_FLAGS completion_flags_supported;
	/* as the adapter was opened; the providers of OpenDAT are thread safe in any case */
	DAT_BOOLEAN is_thread_safe;
	/* bytes of private data: 512 on soft adapters that use shared memory only, 508 on others
	 * with the setting header=off, 64 on the rest and on RDMA devices */
	DAT_COUNT max_private_data_size;
	DAT_BOOLEAN supports_multipath;	   /* DAT_FALSE */
	DAT_EP_CREATOR_FOR_PSP ep_creator; /* DAT_PSP_CREATES_EP_IFASKED */
	DAT_PZ_SUPPORT pz_support;	   /* DAT_PZ_UNIQUE */
	/* the alignment in bytes at which buffers are fastest: DAT_OPTIMAL_ALIGNMENT */
	DAT_UINT32 optimal_buffer_alignment;
	/* which kinds of events may share an EVD: all. Rows and columns are software, connection
	 * request, DTO, connection, bind, asynchronous. For one exception see dat_ep_create */
#ifdef __cplusplus
	DAT_BOOLEAN evd_stream_merging_supported[6][6]; /* no const: C++ could not construct it */
#else
	const DAT_BOOLEAN evd_stream_merging_supported[6][6];
#endif
	/* shared receive queues: DAT_TRUE, except on RDMA devices without them */
	DAT_BOOLEAN srq_supported;
	/* watermarks, a sum: 0x001 low, 0x010 soft high, 0x100 hard high. It is 0x111, and 0x001 on
	 * RDMA devices, where the high watermarks serve endpoints without a shared receive queue */
	DAT_COUNT srq_watermarks_supported;
	/* an endpoint may be in another protection zone than its shared receive queue: DAT_TRUE;
	 * DAT_FALSE on RDMA devices */
	DAT_BOOLEAN srq_ep_pz_difference_supported;
	/* what dat_srq_query knows, a sum: 0x01 available_dto_count, 0x10 outstanding_dto_count. It
	 * is 0x11 */
	DAT_COUNT srq_info_supported;
	/* what dat_ep_recv_query knows, a sum: 0x01 nbufs_allocated, 0x10 bufs_alloc_span. It is
	 * 0x11. With a shared receive queue of an RDMA device both are DAT_VALUE_UNKNOWN */
	DAT_COUNT ep_recv_info_supported;
	/* dat_lmr_sync_rdma_read and dat_lmr_sync_rdma_write are required: DAT_FALSE */
	DAT_BOOLEAN lmr_sync_req;
	/* all errors of posts are reported by completions: DAT_FALSE, since a post refuses what it
	 * can see */
	DAT_BOOLEAN dto_async_return_guaranteed;
	/* the local buffer of an RDMA Read needs DAT_MEM_PRIV_REMOTE_WRITE_FLAG: DAT_FALSE */
	DAT_BOOLEAN rdma_write_for_rdma_read_req;
	DAT_COUNT num_provider_specific_attr;	/* number of provider_specific_attr: 0 */
	DAT_NAMED_ATTR *provider_specific_attr; /* attributes of the provider */
};

/* ---- calls: local memory regions ---- */

/*
 * Register memory.
 *
 * Keep the memory mapped until dat_lmr_free. What happens otherwise depends on who copies. If the
 * peer or the kernel copies, RDMA of a peer ends with success or DAT_DTO_ERR_REMOTE_ACCESS, and no
 * signal is raised. On the soft adapters a post, a dequeue, a wait or a query of this process
 * copies to and from the memory too, for example to place a message or RDMA through a ring, and
 * faults as any access does. A handler of the signal may map the memory again and return; leaving
 * the call by a jump is undefined. Threads of the library never fault: the transfer then ends with
 * DAT_DTO_ERR_LOCAL_PROTECTION, an RDMA of a peer with DAT_DTO_ERR_REMOTE_ACCESS.
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
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_PZ: no protection zone of the instance
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_LMR:
 *     DAT_MEM_TYPE_LMR, and for_lmr_handle is no region of the instance
 *   DAT_INVALID_PARAMETER, mem_type: a type that is not defined
 *   DAT_INVALID_PARAMETER, region_description:
 *     NULL, a NULL cookie, or memory that is not completely mapped or, for a device that writes to
 *     it, not writable
 *   DAT_INVALID_PARAMETER, length: 0
 *   DAT_INVALID_PARAMETER, privileges: a privilege that is not defined
 *   DAT_INVALID_PARAMETER, lmr_handle: NULL
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
 *   DAT_INVALID_PARAMETER, evd_min_qlen: not positive
 *   DAT_INVALID_PARAMETER, evd_flags: no flag, or one that is not defined
 *   DAT_INVALID_PARAMETER, evd_handle: NULL
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
 * The asynchronous EVD that dat_ia_open makes has no CNO. With one, asynchronous events reach
 * dat_cno_wait, and with dat_opendat_cno_fd an event loop. Events that are queued already do not
 * notify: take them with dat_evd_dequeue after the call.
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
 *   DAT_INVALID_PARAMETER, agent: instance data without a function
 *   DAT_INVALID_PARAMETER, cno_handle: NULL
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
 *   DAT_INVALID_PARAMETER, agent: instance data without a function
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
 *   DAT_INVALID_PARAMETER, cno_param_mask: a bit that is not defined
 *   DAT_INVALID_PARAMETER, cno_param: NULL
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
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_CNO_IN_USE: an EVD refers to it, or a thread waits on it
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
 *   DAT_INVALID_PARAMETER, evd_handle: NULL
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
 *   DAT_INVALID_PARAMETER, threshold: not positive, or more than the length of the queue
 *   DAT_INVALID_PARAMETER, event: NULL
 *   DAT_INVALID_PARAMETER, n_more_events: NULL
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_EVD_WAITER: another thread waits
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_EVD_UNWAITABLE: the EVD is or becomes unwaitable
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

#ifdef DAT_CXX_FLAGS
DAT_CXX_FLAGS(DAT_EVD_PARAM_MASK, 0x1fu);
DAT_CXX_FLAGS(DAT_CNO_PARAM_MASK, 0x03u);
#endif

#endif /* _UDAT_H_ */
