/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of the API that user-level and kernel consumers share: handles, attributes, events,
 * and every call that is not in udat.h. Consumers include <dat/udat.h>.
 *
 * The manual pages of section 3 are generated from the comments here: man/call_comments.py and
 * man/type_comments.py describe their form.
 */

#ifndef _UDAT_H_
#include <dat/udat.h>
#endif

#ifndef _DAT_H_
#define _DAT_H_

#include <dat/dat_cxx.h>
#include <dat/dat_error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- general ---- */

/* The size of the longest name in bytes, including the terminating NUL. */
#define DAT_NAME_MAX_LENGTH 256

/* A printable name: at most DAT_NAME_MAX_LENGTH bytes, terminated by NUL. */
typedef char *DAT_NAME_PTR;

/* A truth value. Every value except DAT_FALSE means true. */
typedef enum dat_boolean {
	DAT_FALSE = 0, /* false */
	DAT_TRUE = 1,  /* true */
} DAT_BOOLEAN;

/*
 * A named attribute of an adapter, a provider or an endpoint. dat_ia_query returns arrays of them.
 * The strings belong to the provider and are valid while the instance is open.
 */
typedef struct dat_named_attr {
	const char *name;  /* terminated by NUL */
	const char *value; /* terminated by NUL */
} DAT_NAMED_ATTR;

/*
 * 64 bits of the consumer, which the library does not interpret. The members share the same
 * memory. dat_set_consumer_context stores such a value with an object.
 */
typedef union dat_context {
	DAT_PVOID as_ptr;	/* as a pointer */
	DAT_UINT64 as_64;	/* as an integer */
	DAT_UVERYLONG as_index; /* as an index */
} DAT_CONTEXT;

/*
 * Values that a request carries and its completion returns unchanged. The library does not
 * interpret them: they need not be unique, and may be zero.
 */
typedef DAT_CONTEXT DAT_DTO_COOKIE; /* of a data transfer, see DAT_DTO_COMPLETION_EVENT_DATA */
typedef DAT_CONTEXT DAT_RMR_COOKIE; /* of a bind, see DAT_RMR_BIND_COMPLETION_EVENT_DATA */

/*
 * How requests and receives complete, and whether their completions notify.
 *
 * The flags have two uses. As an argument of a post they apply to that request or receive. As
 * recv_completion_flags and request_completion_flags in DAT_EP_ATTR they say which notifications
 * the endpoint asks for.
 *
 * A completion that notifies wakes the thread in dat_evd_wait and triggers the CNO of the EVD. One
 * that does not is queued all the same: dat_evd_dequeue returns it, dat_evd_wait returns it at once
 * if it is queued when the call begins, and the next notification wakes a thread that takes it. A
 * completion with an error always notifies.
 *
 * Specification: transfers.md, Completion flags.
 */
typedef enum dat_completion_flags {
	/* every completion is an event and notifies; as an attribute of an endpoint the same as
	 * DAT_COMPLETION_EVD_THRESHOLD_FLAG */
	DAT_COMPLETION_DEFAULT_FLAG = 0x00,
	/* no event if the request succeeds; an event if it fails or is flushed. For each request
	 * and bind, not for receives. The success of a later request of the endpoint that is not
	 * suppressed means that this one has succeeded. As an attribute it has no effect */
	DAT_COMPLETION_SUPPRESS_FLAG = 0x01,
	/* for a Send: the receive at the peer notifies, if recv_completion_flags of the peer's
	 * endpoint is this flag; without effect on RDMA. As recv_completion_flags: receives notify
	 * only if the Send asks for it */
	DAT_COMPLETION_SOLICITED_WAIT_FLAG = 0x02,
	/* the event of a successful completion does not notify. A post may use it only if the
	 * attribute of the endpoint has it; other posts on that endpoint notify */
	DAT_COMPLETION_UNSIGNALLED_FLAG = 0x04,
	/* the request starts after all earlier RDMA Reads of the endpoint have completed, so that
	 * it can send what they read. For each request, not for receives; without effect as an
	 * attribute */
	DAT_COMPLETION_BARRIER_FENCE_FLAG = 0x08,
	/* an attribute of endpoints only, and their default: every completion notifies, and the
	 * threshold of dat_evd_wait says how many events wake the thread */
	DAT_COMPLETION_EVD_THRESHOLD_FLAG = 0x10,
} DAT_COMPLETION_FLAGS;

/*
 * Relative times in microseconds of the monotonic clock. Setting the system time does not change a
 * wait.
 */
typedef DAT_UINT32 DAT_TIMEOUT;			/* at most 71 minutes; a wait of 0 only polls */
#define DAT_TIMEOUT_INFINITE ((DAT_TIMEOUT)~0U) /* no limit */

/* ---- handles ---- */

/*
 * Opaque handles of objects. A call creates the object and returns its handle, which is valid until
 * the object is freed. A handle of a freed object, or of an object of another type, is refused with
 * DAT_INVALID_HANDLE. In a child process after fork(2) all inherited handles are refused.
 * dat_get_handle_type returns the type of the object.
 *
 * Specification: registry.md, General conventions (all functions).
 */
typedef DAT_PVOID DAT_HANDLE;	   /* of any object */
typedef DAT_HANDLE DAT_CR_HANDLE;  /* a connection request that waits for its answer */
typedef DAT_HANDLE DAT_EP_HANDLE;  /* an endpoint, one end of a connection */
typedef DAT_HANDLE DAT_EVD_HANDLE; /* an event dispatcher, a queue of events */
typedef DAT_HANDLE DAT_IA_HANDLE;  /* an instance: an interface adapter that this process opened */
typedef DAT_HANDLE DAT_LMR_HANDLE; /* a local memory region: registered memory */
typedef DAT_HANDLE DAT_PSP_HANDLE; /* a public service point, which listens for any number */
typedef DAT_HANDLE DAT_PZ_HANDLE;  /* a protection zone: which endpoints may use which memory */
typedef DAT_HANDLE DAT_RMR_HANDLE; /* a remote memory region: a window for peers */
typedef DAT_HANDLE DAT_RSP_HANDLE; /* a reserved service point, which listens for one request */
typedef DAT_HANDLE DAT_SRQ_HANDLE; /* a shared receive queue: buffers for several endpoints */
#define DAT_HANDLE_NULL ((DAT_HANDLE)NULL) /* no object */

/* ---- addresses, connections ---- */

/*
 * The address of an interface adapter: a pointer to a socket address. It is a struct sockaddr *, so
 * its sa_family says which structure it points to: AF_INET for a struct sockaddr_in, AF_INET6 for a
 * struct sockaddr_in6. Cast a pointer to such a structure to pass it to dat_ep_connect.
 *
 * The port in the structure is ignored: the service at the address is named by a DAT_CONN_QUAL. The
 * address of an own adapter is ia_address_ptr in DAT_IA_ATTR, and a peer can connect to that
 * address as it is. The memory of addresses that a call returns belongs to the provider.
 */
typedef DAT_SOCK_ADDR *DAT_IA_ADDRESS_PTR;

/*
 * A connection qualifier: the service at the address of an adapter. All 64 bits count. 0 is
 * invalid. dat_psp_create_any returns qualifiers below 65536 while others leave any. Two service
 * points of one address, in any processes, cannot have the same. On RDMA devices a qualifier up to
 * 65535 is also the port of the RDMA connection manager, if that port is free, so that any RDMA
 * program can connect to it.
 */
typedef DAT_UINT64 DAT_CONN_QUAL;

/*
 * A port qualifier: which endpoint at an adapter's address. The provider gives one to an endpoint
 * when it connects. dat_ep_query and dat_cr_query return it.
 */
typedef DAT_UINT64 DAT_PORT_QUAL;

/*
 * Qualities of service. dat_qos_supported of DAT_PROVIDER_ATTR lists those that a provider has. The
 * providers of OpenDAT have DAT_QOS_BEST_EFFORT only, and refuse the others with
 * DAT_MODEL_NOT_SUPPORTED.
 */
typedef enum dat_qos {
	DAT_QOS_BEST_EFFORT = 0x00,	/* no preference; the default */
	DAT_QOS_HIGH_THROUGHPUT = 0x01, /* throughput before latency */
	DAT_QOS_LOW_LATENCY = 0x02,	/* latency before throughput */
	DAT_QOS_ECONOMY = 0x04,		/* the least cost */
	DAT_QOS_PREMIUM = 0x08,		/* the best quality */
} DAT_QOS;

/* Flags of dat_ep_connect. */
typedef enum dat_connect_flags {
	DAT_CONNECT_DEFAULT_FLAG = 0x00, /* one path */
	/* several paths to the peer. The providers of OpenDAT refuse it with
	 * DAT_MODEL_NOT_SUPPORTED: supports_multipath of DAT_PROVIDER_ATTR is DAT_FALSE */
	DAT_CONNECT_MULTIPATH_FLAG = 0x01,
} DAT_CONNECT_FLAGS;

/* Flags of dat_ia_close and dat_ep_disconnect: whether to wait for what is under way. */
typedef enum dat_close_flags {
	/* dat_ep_disconnect: end the connection at once; outstanding requests are flushed, or
	 * complete if they are in progress. dat_ia_close: destroy all objects of the instance */
	DAT_CLOSE_ABRUPT_FLAG = 0x00,
	/* dat_ep_disconnect: carry out the posted requests first. dat_ia_close: refuse the call
	 * while objects of the consumer exist */
	DAT_CLOSE_GRACEFUL_FLAG = 0x01,
} DAT_CLOSE_FLAGS;

/* Names of earlier versions. */
#define DAT_CLOSE_DEFAULT DAT_CLOSE_ABRUPT_FLAG

/*
 * The kinds of events that an EVD accepts, see dat_evd_create. All combinations are allowed. A call
 * that ties an object to an EVD without the flag that it needs is refused with DAT_INVALID_HANDLE.
 *
 * Specification: events.md, Event streams and delivery.
 */
typedef enum dat_evd_flags {
	DAT_EVD_SOFTWARE_FLAG = 0x0001,	  /* events of dat_evd_post_se */
	DAT_EVD_CR_FLAG = 0x0010,	  /* connection requests of service points */
	DAT_EVD_DTO_FLAG = 0x0020,	  /* completions of receives and of requests */
	DAT_EVD_CONNECTION_FLAG = 0x0040, /* connection events of endpoints */
	/* completions of dat_rmr_bind; the request EVD of the endpoint needs it to post a bind */
	DAT_EVD_RMR_BIND_FLAG = 0x0080,
	/* asynchronous errors; for an EVD that is passed to dat_ia_open */
	DAT_EVD_ASYNC_FLAG = 0x0100,
	DAT_EVD_DEFAULT_FLAG = 0x01f0, /* all except software events */
} DAT_EVD_FLAGS;

/*
 * Whether the consumer or the provider makes the endpoints for requests to a PSP. The providers of
 * OpenDAT support both, see ep_creator in DAT_PROVIDER_ATTR.
 */
typedef enum dat_psp_flags {
	/* the consumer passes an endpoint to dat_cr_accept; local_ep_handle of the request is
	 * DAT_HANDLE_NULL */
	DAT_PSP_CONSUMER_FLAG = 0x00,
	/* each request comes with an endpoint of its own, local_ep_handle of dat_cr_query, in
	 * DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING. dat_ep_modify must set its protection zone and
	 * EVDs before dat_cr_accept */
	DAT_PSP_PROVIDER_FLAG = 0x01,
} DAT_PSP_FLAGS;

/* ---- memory ---- */

/*
 * The local key of a memory region. dat_lmr_create returns it, and local triplets name the region
 * by it. It is valid in the process and the instance that registered the memory.
 */
typedef DAT_UINT32 DAT_LMR_CONTEXT;

/*
 * The remote key of a memory region or window. dat_lmr_create and dat_rmr_bind return it. The
 * program sends it to its peers, which name the memory by it in a DAT_RMR_TRIPLET. It is in host
 * byte order.
 */
typedef DAT_UINT32 DAT_RMR_CONTEXT;

/* Lengths and addresses of memory, always 64 bits wide. */
typedef DAT_UINT64 DAT_VLEN;  /* a length in bytes */
typedef DAT_UINT64 DAT_VADDR; /* a virtual address: (DAT_VADDR)(uintptr_t)pointer */

/* Completed in udat.h. */
typedef struct dat_provider_attr DAT_PROVIDER_ATTR;
typedef struct dat_evd_param DAT_EVD_PARAM;
typedef struct dat_lmr_param DAT_LMR_PARAM;

/*
 * A piece of local memory: a segment of a buffer. An array of triplets is the buffer of a post. The
 * segments are filled, or read, in the order of the array. The array can be reused as soon as the
 * post returns; the memory is in use until the completion.
 *
 * Specification: transfers.md, Protection.
 */
typedef struct dat_lmr_triplet {
	DAT_LMR_CONTEXT lmr_context; /* key of the region, from dat_lmr_create */
	DAT_UINT32 pad;		     /* ignored */
	/* start of the piece, anywhere in the region; any alignment */
	DAT_VADDR virtual_address;
	/* bytes; if 0, the other members are ignored */
	DAT_VLEN segment_length;
} DAT_LMR_TRIPLET;

/*
 * A piece of memory of a peer, the target of RDMA. The peer sends the key and the address to the
 * program, for example as private data or in a message. All members are in host byte order.
 *
 * Specification: transfers.md, Protection.
 */
typedef struct dat_rmr_triplet {
	DAT_RMR_CONTEXT rmr_context; /* key from dat_lmr_create or dat_rmr_bind of the peer */
	DAT_UINT32 pad;		     /* ignored */
	DAT_VADDR target_address;    /* start of the piece, an address of the peer */
	/* bytes. dat_ep_post_rdma_read transfers this many; dat_ep_post_rdma_write transfers the
	 * local length, which must not be more */
	DAT_VLEN segment_length;
} DAT_RMR_TRIPLET;

/*
 * Permitted uses of memory, the sum of flags. dat_lmr_create sets them for a region, dat_rmr_bind
 * for a window. A post that needs a use of local memory that is not permitted is refused with
 * DAT_PRIVILEGES_VIOLATION. RDMA of a peer ends with DAT_DTO_ERR_REMOTE_ACCESS and breaks the
 * connection.
 *
 * Specification: transfers.md, Protection.
 */
typedef enum dat_mem_priv_flags {
	DAT_MEM_PRIV_NONE_FLAG = 0x0000, /* no use */
	/* source of Sends and RDMA Writes of this process */
	DAT_MEM_PRIV_LOCAL_READ_FLAG = 0x0001,
	/* source of RDMA Reads of peers */
	DAT_MEM_PRIV_REMOTE_READ_FLAG = 0x0002,
	/* target of receives and RDMA Reads of this process. With OpenDAT it includes
	 * DAT_MEM_PRIV_LOCAL_READ_FLAG */
	DAT_MEM_PRIV_LOCAL_WRITE_FLAG = 0x0010,
	/* target of RDMA Writes of peers */
	DAT_MEM_PRIV_REMOTE_WRITE_FLAG = 0x0020,
	DAT_MEM_PRIV_ALL_FLAG = 0x0033, /* all four uses */
	/* for sources written for Solaris, where providers set it. dat_lmr_create and dat_rmr_bind
	 * refuse it */
	DAT_MEM_PRIV_RO_DISABLE_FLAG = 0x0100,
} DAT_MEM_PRIV_FLAGS;
/* reads of this process and of peers; the name of an earlier version */
#define DAT_MEM_PRIV_READ_FLAG (DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)
/* writes of this process and of peers; the name of an earlier version */
#define DAT_MEM_PRIV_WRITE_FLAG (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* Selects the members of DAT_LMR_PARAM that dat_lmr_query fills. */
typedef enum dat_lmr_param_mask {
	DAT_LMR_FIELD_IA_HANDLE = 0x0001,
	DAT_LMR_FIELD_MEM_TYPE = 0x0002,
	DAT_LMR_FIELD_REGION_DESC = 0x0004,
	DAT_LMR_FIELD_LENGTH = 0x0008,
	DAT_LMR_FIELD_PZ_HANDLE = 0x0010,
	DAT_LMR_FIELD_MEM_PRIV = 0x0020,
	DAT_LMR_FIELD_LMR_CONTEXT = 0x0040,
	DAT_LMR_FIELD_RMR_CONTEXT = 0x0080,
	DAT_LMR_FIELD_REGISTERED_SIZE = 0x0100,
	DAT_LMR_FIELD_REGISTERED_ADDRESS = 0x0200,
	DAT_LMR_FIELD_ALL = 0x03ff,
} DAT_LMR_PARAM_MASK;

/*
 * Parameters of an RMR, see dat_rmr_query. The last three describe the current binding. While a
 * bind is posted and not complete, they may be those of the binding before.
 */
typedef struct dat_rmr_param {
	DAT_IA_HANDLE ia_handle;     /* the instance */
	DAT_PZ_HANDLE pz_handle;     /* the protection zone */
	DAT_LMR_TRIPLET lmr_triplet; /* the memory; a query of an RMR that is not bound fails */
	DAT_MEM_PRIV_FLAGS mem_priv; /* what peers may do; none if the RMR is not bound */
	DAT_RMR_CONTEXT rmr_context; /* the key for peers; 0 if the RMR is not bound */
} DAT_RMR_PARAM;

/* Selects the members of DAT_RMR_PARAM that dat_rmr_query fills. */
typedef enum dat_rmr_param_mask {
	DAT_RMR_FIELD_IA_HANDLE = 0x01,
	DAT_RMR_FIELD_PZ_HANDLE = 0x02,
	DAT_RMR_FIELD_LMR_TRIPLET = 0x04,
	DAT_RMR_FIELD_MEM_PRIV = 0x08,
	DAT_RMR_FIELD_RMR_CONTEXT = 0x10,
	DAT_RMR_FIELD_ALL = 0x1f,
} DAT_RMR_PARAM_MASK;

/* ---- interface adapter ---- */

/*
 * Who owns the array of triplets after a post returns. It is iov_ownership_on_return of
 * DAT_PROVIDER_ATTR, and DAT_IOV_CONSUMER with the providers of OpenDAT. The array belongs to the
 * consumer again in any case when the completion is delivered.
 */
typedef enum dat_iov_ownership {
	DAT_IOV_CONSUMER = 0x00,       /* the consumer: it may change the array at once */
	DAT_IOV_PROVIDER_NOMOD = 0x01, /* the provider, which does not modify the array */
	DAT_IOV_PROVIDER_MOD = 0x02,   /* the provider, which may modify the array */
} DAT_IOV_OWNERSHIP;

/*
 * When a provider makes the endpoints for requests to a PSP. It is ep_creator of DAT_PROVIDER_ATTR,
 * and DAT_PSP_CREATES_EP_IFASKED with the providers of OpenDAT.
 */
typedef enum dat_ep_creator_for_psp {
	DAT_PSP_CREATES_EP_NEVER = 0,	/* DAT_PSP_PROVIDER_FLAG is not supported */
	DAT_PSP_CREATES_EP_IFASKED = 1, /* for a PSP with DAT_PSP_PROVIDER_FLAG */
	DAT_PSP_CREATES_EP_ALWAYS = 2,	/* DAT_PSP_CONSUMER_FLAG is not supported */
} DAT_EP_CREATOR_FOR_PSP;

/*
 * Attributes and limits of an adapter, see dat_ia_query. They are the same for all instances of the
 * adapter and never change. The memory of the structure belongs to the caller. Pointers in it lead
 * to memory of the provider, which is valid while the instance is open. dat_info(1) shows the
 * values of each adapter.
 *
 * A call that would make more objects than a limit allows fails with DAT_INSUFFICIENT_RESOURCES.
 * For the other limits see the page of the call.
 *
 * Specification: registry.md, dat_ia_query.
 */
typedef struct dat_ia_attr {
	/* the name that the adapter was opened by, without RO_AWARE_ */
	char adapter_name[DAT_NAME_MAX_LENGTH];
	/* who made the device; on RDMA devices the numbers of vendor and part */
	char vendor_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 hardware_version_major; /* version of the device */
	DAT_UINT32 hardware_version_minor; /* version of the device */
	DAT_UINT32 firmware_version_major; /* version of the firmware */
	DAT_UINT32 firmware_version_minor; /* version of the firmware */
	/* the address of the adapter, to which peers can connect */
	DAT_IA_ADDRESS_PTR ia_address_ptr;
	DAT_COUNT max_eps; /* endpoints, in all states */
	/* outstanding requests, binds included, of one endpoint; also receives */
	DAT_COUNT max_dto_per_ep;
	/* RDMA Reads of the peer that one endpoint serves at once; limit of max_rdma_read_in */
	DAT_COUNT max_rdma_read_per_ep_in;
	/* RDMA Reads of one endpoint under way at once; limit of max_rdma_read_out */
	DAT_COUNT max_rdma_read_per_ep_out;
	DAT_COUNT max_evds;			   /* EVDs */
	DAT_COUNT max_evd_qlen;			   /* events in one EVD */
	DAT_COUNT max_iov_segments_per_dto;	   /* triplets of a Send or a receive */
	DAT_COUNT max_lmrs;			   /* memory regions */
	DAT_VLEN max_lmr_block_size;		   /* bytes of one region */
	DAT_VADDR max_lmr_virtual_address;	   /* the highest address of a region */
	DAT_COUNT max_pzs;			   /* protection zones */
	DAT_VLEN max_message_size;		   /* bytes of one message */
	DAT_VLEN max_rdma_size;			   /* bytes of one RDMA operation */
	DAT_COUNT max_rmrs;			   /* RMRs */
	DAT_VADDR max_rmr_target_address;	   /* the highest address of a window */
	DAT_COUNT max_srqs;			   /* shared receive queues */
	DAT_COUNT max_ep_per_srq;		   /* endpoints of one shared receive queue */
	DAT_COUNT max_recv_per_srq;		   /* buffers of one shared receive queue */
	DAT_COUNT max_iov_segments_per_rdma_read;  /* triplets of an RDMA Read */
	DAT_COUNT max_iov_segments_per_rdma_write; /* triplets of an RDMA Write */
	/* RDMA Reads with this adapter as target at once, over all endpoints */
	DAT_COUNT max_rdma_read_in;
	/* RDMA Reads with this adapter as originator at once, over all endpoints */
	DAT_COUNT max_rdma_read_out;
	/* each endpoint can have max_rdma_read_per_ep_in, whatever the others have */
	DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
	/* each endpoint can have max_rdma_read_per_ep_out, whatever the others have */
	DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
	DAT_COUNT num_transport_attr; /* number of transport_attr */
	/* attributes of the transport. RDMA devices have, among others, link (InfiniBand, RoCE or
	 * iWARP) and rmr_bind (window or registration); soft adapters have none */
	DAT_NAMED_ATTR *transport_attr;
	DAT_COUNT num_vendor_attr;   /* number of vendor_attr; 0 with the providers of OpenDAT */
	DAT_NAMED_ATTR *vendor_attr; /* attributes of the vendor */
} DAT_IA_ATTR;

/* Names of earlier versions. */
#define max_rdma_read_per_ep max_rdma_read_per_ep_in
#define max_mtu_size max_message_size

/* Selects the members of DAT_IA_ATTR that dat_ia_query fills. */
typedef DAT_UINT64 DAT_IA_ATTR_MASK; /* the sum of bits */

#define DAT_IA_FIELD_IA_ADAPTER_NAME UINT64_C(0x000000001)
#define DAT_IA_FIELD_IA_VENDOR_NAME UINT64_C(0x000000002)
#define DAT_IA_FIELD_IA_HARDWARE_MAJOR_VERSION UINT64_C(0x000000004) /* hardware_version_major */
#define DAT_IA_FIELD_IA_HARDWARE_MINOR_VERSION UINT64_C(0x000000008) /* hardware_version_minor */
#define DAT_IA_FIELD_IA_FIRMWARE_MAJOR_VERSION UINT64_C(0x000000010) /* firmware_version_major */
#define DAT_IA_FIELD_IA_FIRMWARE_MINOR_VERSION UINT64_C(0x000000020) /* firmware_version_minor */
#define DAT_IA_FIELD_IA_ADDRESS_PTR UINT64_C(0x000000040)
#define DAT_IA_FIELD_IA_MAX_EPS UINT64_C(0x000000080)
#define DAT_IA_FIELD_IA_MAX_DTO_PER_EP UINT64_C(0x000000100)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN UINT64_C(0x000000200)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT UINT64_C(0x000000400)
#define DAT_IA_FIELD_IA_MAX_EVDS UINT64_C(0x000000800)
#define DAT_IA_FIELD_IA_MAX_EVD_QLEN UINT64_C(0x000001000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO UINT64_C(0x000002000)
#define DAT_IA_FIELD_IA_MAX_LMRS UINT64_C(0x000004000)
#define DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE UINT64_C(0x000008000)
#define DAT_IA_FIELD_IA_MAX_LMR_VIRTUAL_ADDRESS UINT64_C(0x000010000)
#define DAT_IA_FIELD_IA_MAX_PZS UINT64_C(0x000020000)
#define DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE UINT64_C(0x000040000)
#define DAT_IA_FIELD_IA_MAX_RDMA_SIZE UINT64_C(0x000080000)
#define DAT_IA_FIELD_IA_MAX_RMRS UINT64_C(0x000100000)
#define DAT_IA_FIELD_IA_MAX_RMR_TARGET_ADDRESS UINT64_C(0x000200000)
#define DAT_IA_FIELD_IA_MAX_SRQS UINT64_C(0x000400000)
#define DAT_IA_FIELD_IA_MAX_EP_PER_SRQ UINT64_C(0x000800000)
#define DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ UINT64_C(0x001000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ UINT64_C(0x002000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE UINT64_C(0x004000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_IN UINT64_C(0x008000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_OUT UINT64_C(0x010000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN_GUARANTEED UINT64_C(0x020000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT_GUARANTEED UINT64_C(0x040000000)
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR UINT64_C(0x080000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR UINT64_C(0x200000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR UINT64_C(0x400000000)

#define DAT_IA_FIELD_ALL UINT64_C(0x7ffffffff)
#define DAT_IA_FIELD_NONE UINT64_C(0x000000000)

/* Names of earlier versions. */
#define DAT_IA_FIELD_IA_MAX_MTU_SIZE DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE
#define DAT_IA_FIELD_IA_MAX_DTO_PER_OP DAT_IA_FIELD_IA_MAX_DTO_PER_EP
#define DAT_IA_ALL DAT_IA_FIELD_ALL

/* ---- endpoints ---- */

/* Kinds of connections: reliable ones only. */
typedef enum dat_service_type {
	DAT_SERVICE_TYPE_RC = 0, /* reliable connection */
} DAT_SERVICE_TYPE;

/*
 * Attributes of an endpoint, see dat_ep_create.
 *
 * If a program passes no attributes to dat_ep_create, the defaults below apply, lowered to the
 * limits of the adapter. In attributes that it passes, 0 means the default only in
 * max_message_size, max_rdma_size, max_rdma_read_iov and max_rdma_write_iov. In all other members 0
 * is the value 0: a queue of length 0 is refused if its EVD is given, and max_rdma_read_out of 0
 * allows no RDMA Read.
 *
 * A value that is negative or beyond the limit is refused with DAT_INVALID_PARAMETER.
 * dat_ep_query returns the attributes in force, and dat_ep_create accepts what it returns.
 *
 * Specification: endpoints.md, dat_ep_create.
 */
typedef struct dat_ep_attr {
	DAT_SERVICE_TYPE service_type; /* DAT_SERVICE_TYPE_RC */
	/* bytes of the longest Send; 0: the default, max_message_size of the adapter. A message may
	 * be received if the buffer is large enough, whatever the receiver's value is */
	DAT_VLEN max_message_size;
	/* bytes of the longest RDMA that the program expects; 0: the default, max_rdma_size of the
	 * adapter. It is a hint: RDMA up to the limit of the adapter works */
	DAT_VLEN max_rdma_size;
	DAT_QOS qos; /* default, and the only one supported: DAT_QOS_BEST_EFFORT */
	/* which receives notify: exactly one of DAT_COMPLETION_DEFAULT_FLAG,
	 * DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG and
	 * DAT_COMPLETION_EVD_THRESHOLD_FLAG, the default */
	DAT_COMPLETION_FLAGS recv_completion_flags;
	/* which requests notify: DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG or
	 * DAT_COMPLETION_EVD_THRESHOLD_FLAG, the default. Other flags of requests are accepted and
	 * have no effect here */
	DAT_COMPLETION_FLAGS request_completion_flags;
	/* receives posted at once: from 1 to max_dto_per_ep of the adapter with a receive EVD, 0
	 * without one. Default: 16, or 0 without a receive EVD. With a shared receive queue the
	 * hard high watermark instead, see dat_ep_set_watermark: 0 or DAT_HW_DEFAULT for none */
	DAT_COUNT max_recv_dtos;
	/* requests and binds outstanding at once: from 1 to max_dto_per_ep of the adapter with a
	 * request EVD, 0 without one. Default: 16, or 0 without a request EVD */
	DAT_COUNT max_request_dtos;
	/* triplets of a receive, up to max_iov_segments_per_dto of the adapter; not 0 with a
	 * receive EVD; ignored with a shared receive queue. Default: 4 */
	DAT_COUNT max_recv_iov;
	/* triplets of a Send: from 1, also without a request EVD, to max_iov_segments_per_dto of
	 * the adapter. Default: 4 */
	DAT_COUNT max_request_iov;
	/* RDMA Reads of the peer at once: from 0, none, to max_rdma_read_per_ep_in of the adapter.
	 * Default: 8 */
	DAT_COUNT max_rdma_read_in;
	/* RDMA Reads to the peer at once: from 0, none, to max_rdma_read_per_ep_out of the adapter.
	 * More can be posted; they wait for their turn. Default: 8 */
	DAT_COUNT max_rdma_read_out;
	/* soft high watermark of an endpoint with a shared receive queue, see dat_ep_set_watermark:
	 * 0 or DAT_HW_DEFAULT for none. Ignored without such a queue. Default: DAT_HW_DEFAULT */
	DAT_COUNT srq_soft_hw;
	/* triplets of an RDMA Read, up to max_iov_segments_per_rdma_read of the adapter; 0: the
	 * default, 4 */
	DAT_COUNT max_rdma_read_iov;
	/* triplets of an RDMA Write, up to max_iov_segments_per_rdma_write of the adapter; 0: the
	 * default, 4 */
	DAT_COUNT max_rdma_write_iov;
	/* number of ep_transport_specific; 0, since OpenDAT has no such attribute */
	DAT_COUNT ep_transport_specific_count;
	DAT_NAMED_ATTR *ep_transport_specific; /* ignored if the number is 0 */
	/* number of ep_provider_specific; 0, since OpenDAT has no such attribute */
	DAT_COUNT ep_provider_specific_count;
	DAT_NAMED_ATTR *ep_provider_specific; /* ignored if the number is 0 */
} DAT_EP_ATTR;

/*
 * States of an endpoint. dat_ep_get_status and dat_ep_query return the state. It changes no later
 * than the event that reports the change can be dequeued.
 *
 * A receive can be posted in every state. Requests can be posted in DAT_EP_STATE_CONNECTED, and in
 * DAT_EP_STATE_DISCONNECTED, where they are flushed at once. A call that the state forbids fails
 * with DAT_INVALID_STATE, and the subtype names the state, see DAT_RETURN_SUBTYPE.
 *
 * Specification: endpoints.md, the Endpoint state machine.
 */
typedef enum dat_ep_state {
	/* no connection: a new endpoint, one after dat_ep_reset, or one whose request was rejected.
	 * It can connect, accept a request, or be reserved */
	DAT_EP_STATE_UNCONNECTED = 0,
	/* never reported: an endpoint without a protection zone or EVDs is unconnected */
	DAT_EP_STATE_UNCONFIGURED_UNCONNECTED = 1,
	/* dat_rsp_create has tied it to a service point, which waits for a request */
	DAT_EP_STATE_RESERVED = 2,
	DAT_EP_STATE_UNCONFIGURED_RESERVED = 3, /* never reported */
	/* a request has arrived at its service point and waits for dat_cr_accept or
	 * dat_cr_reject */
	DAT_EP_STATE_PASSIVE_CONNECTION_PENDING = 4,
	DAT_EP_STATE_UNCONFIGURED_PASSIVE = 5, /* never reported */
	/* dat_ep_connect or dat_ep_dup_connect has begun; a connection event will report the
	 * result */
	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING = 6,
	/* the provider made it for a request, which waits for dat_cr_accept or dat_cr_reject; see
	 * DAT_PSP_PROVIDER_FLAG */
	DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING = 7,
	DAT_EP_STATE_UNCONFIGURED_TENTATIVE = 8, /* never reported */
	/* the connection is established, DAT_CONNECTION_EVENT_ESTABLISHED: data can flow */
	DAT_EP_STATE_CONNECTED = 9,
	/* dat_ep_disconnect was called and the disconnect is under way. Posting a request fails */
	DAT_EP_STATE_DISCONNECT_PENDING = 10,
	/* the connection or the attempt has ended, and everything posted is completed or flushed.
	 * dat_ep_reset makes the endpoint unconnected again */
	DAT_EP_STATE_DISCONNECTED = 11,
	/* dat_cr_accept has succeeded; a connection event will report the result */
	DAT_EP_STATE_COMPLETION_PENDING = 12,
} DAT_EP_STATE;

/* Names of earlier versions. */
#define DAT_EP_STATE_ERROR DAT_EP_STATE_DISCONNECTED

/*
 * Parameters of an endpoint, see dat_ep_query and dat_ep_modify. Addresses that a query returns are
 * memory of the provider, valid until dat_ep_free.
 *
 * Specification: endpoints.md, dat_ep_query.
 */
typedef struct dat_ep_param {
	DAT_IA_HANDLE ia_handle;		 /* the instance; cannot be modified */
	DAT_EP_STATE ep_state;			 /* the state; cannot be modified */
	DAT_IA_ADDRESS_PTR local_ia_address_ptr; /* address of the adapter; cannot be modified */
	/* which endpoint at that address, while a connection or an attempt exists; cannot be
	 * modified */
	DAT_PORT_QUAL local_port_qual;
	/* address of the peer's adapter, while a connection or an attempt exists; cannot be
	 * modified */
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	/* while a connection or an attempt exists: at the connecting side the qualifier that it
	 * connected to, at the accepting side local_port_qual of the peer; cannot be modified */
	DAT_PORT_QUAL remote_port_qual;
	/* the protection zone; can be modified in DAT_EP_STATE_UNCONNECTED and
	 * DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING */
	DAT_PZ_HANDLE pz_handle;
	DAT_EVD_HANDLE recv_evd_handle;	   /* for completed receives, or DAT_HANDLE_NULL */
	DAT_EVD_HANDLE request_evd_handle; /* for completed requests, or DAT_HANDLE_NULL */
	DAT_EVD_HANDLE connect_evd_handle; /* for connection events, or DAT_HANDLE_NULL */
	/* the shared receive queue, or DAT_HANDLE_NULL; cannot be modified */
	DAT_SRQ_HANDLE srq_handle;
	/* the attributes; they and the EVDs can be modified until the endpoint connects or
	 * accepts */
	DAT_EP_ATTR ep_attr;
} DAT_EP_PARAM;

/* Selects the members of DAT_EP_PARAM for dat_ep_query and dat_ep_modify. */
typedef DAT_UINT64 DAT_EP_PARAM_MASK; /* the sum of bits */

#define DAT_EP_FIELD_IA_HANDLE UINT64_C(0x00000001)
#define DAT_EP_FIELD_EP_STATE UINT64_C(0x00000002)
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR UINT64_C(0x00000004)
#define DAT_EP_FIELD_LOCAL_PORT_QUAL UINT64_C(0x00000008)
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR UINT64_C(0x00000010)
#define DAT_EP_FIELD_REMOTE_PORT_QUAL UINT64_C(0x00000020)
#define DAT_EP_FIELD_PZ_HANDLE UINT64_C(0x00000040)
#define DAT_EP_FIELD_RECV_EVD_HANDLE UINT64_C(0x00000080)
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE UINT64_C(0x00000100)
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE UINT64_C(0x00000200)
#define DAT_EP_FIELD_SRQ_HANDLE UINT64_C(0x00000400)
#define DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE UINT64_C(0x00001000)
#define DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE UINT64_C(0x00002000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE UINT64_C(0x00004000)
#define DAT_EP_FIELD_EP_ATTR_QOS UINT64_C(0x00008000)
#define DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS UINT64_C(0x00010000)
#define DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS UINT64_C(0x00020000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS UINT64_C(0x00040000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS UINT64_C(0x00080000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV UINT64_C(0x00100000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV UINT64_C(0x00200000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN UINT64_C(0x00400000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT UINT64_C(0x00800000)
#define DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW UINT64_C(0x01000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV UINT64_C(0x02000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV UINT64_C(0x04000000)
/* ep_attr.ep_transport_specific_count */
#define DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR UINT64_C(0x08000000)
/* ep_attr.ep_transport_specific */
#define DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR UINT64_C(0x10000000)
/* ep_attr.ep_provider_specific_count */
#define DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR UINT64_C(0x20000000)
/* ep_attr.ep_provider_specific */
#define DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR UINT64_C(0x40000000)

#define DAT_EP_FIELD_EP_ATTR_ALL UINT64_C(0x7ffff000) /* every member of ep_attr */
#define DAT_EP_FIELD_ALL UINT64_C(0x7ffff7ff)

/*
 * Special values of watermarks and counts.
 *
 * A high watermark limits the receive buffers of an endpoint, see dat_ep_set_watermark. The low
 * watermark of a shared receive queue reports that few buffers are left, see dat_srq_set_lw.
 */
#define DAT_WATERMARK_INFINITE ((DAT_COUNT)~0) /* no high watermark; -1 */
#define DAT_HW_DEFAULT DAT_WATERMARK_INFINITE
#define DAT_SRQ_LW_DEFAULT 0		  /* no low watermark */
#define DAT_VALUE_UNKNOWN ((DAT_COUNT)~1) /* the provider does not know the number; -2 */

/* ---- shared receive queues, zones, service points, connection requests ---- */

/* States of a shared receive queue. */
typedef enum dat_srq_state {
	DAT_SRQ_STATE_OPERATIONAL = 0, /* in order */
	/* failed: buffers stay unused. The providers of OpenDAT never report it */
	DAT_SRQ_STATE_ERROR = 1,
} DAT_SRQ_STATE;

/*
 * Attributes of a shared receive queue, see dat_srq_create.
 *
 * Specification: srq.md, dat_srq_create.
 */
typedef struct dat_srq_attr {
	DAT_COUNT max_recv_dtos; /* buffers, from 1 to max_recv_per_srq of the adapter */
	DAT_COUNT max_recv_iov;	 /* triplets of one, from 1 to max_iov_segments_per_dto */
	DAT_COUNT low_watermark; /* DAT_SRQ_LW_DEFAULT; set it with dat_srq_set_lw */
} DAT_SRQ_ATTR;

/*
 * Parameters of a shared receive queue, see dat_srq_query.
 *
 * Specification: srq.md, dat_srq_query.
 */
typedef struct dat_srq_param {
	DAT_IA_HANDLE ia_handle;       /* the instance */
	DAT_SRQ_STATE srq_state;       /* the state */
	DAT_PZ_HANDLE pz_handle;       /* the protection zone of the buffers */
	DAT_COUNT max_recv_dtos;       /* the buffers that it can hold */
	DAT_COUNT max_recv_iov;	       /* the triplets that a buffer can have */
	DAT_COUNT low_watermark;       /* the value last set; 0 for none */
	DAT_COUNT available_dto_count; /* buffers that no endpoint has taken */
	/* buffers that are posted and whose completion was not dequeued; max_recv_dtos less this
	 * can be posted */
	DAT_COUNT outstanding_dto_count;
} DAT_SRQ_PARAM;

/* Selects the members of DAT_SRQ_PARAM that dat_srq_query fills. */
typedef enum dat_srq_param_mask {
	DAT_SRQ_FIELD_IA_HANDLE = 0x01,
	DAT_SRQ_FIELD_SRQ_STATE = 0x02,
	DAT_SRQ_FIELD_PZ_HANDLE = 0x04,
	DAT_SRQ_FIELD_MAX_RECV_DTO = 0x08, /* max_recv_dtos */
	DAT_SRQ_FIELD_MAX_RECV_IOV = 0x10,
	DAT_SRQ_FIELD_LOW_WATERMARK = 0x20,
	DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT = 0x40,
	DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT = 0x80,
	DAT_SRQ_FIELD_ALL = 0xff,
} DAT_SRQ_PARAM_MASK;

/* Parameters of a protection zone, see dat_pz_query. */
typedef struct dat_pz_param {
	DAT_IA_HANDLE ia_handle; /* the instance */
} DAT_PZ_PARAM;

/* Selects the members of DAT_PZ_PARAM that dat_pz_query fills. */
typedef enum dat_pz_param_mask {
	DAT_PZ_FIELD_IA_HANDLE = 0x01,
	DAT_PZ_FIELD_ALL = 0x01,
} DAT_PZ_PARAM_MASK;

/* Parameters of a public service point, see dat_psp_query. */
typedef struct dat_psp_param {
	DAT_IA_HANDLE ia_handle;   /* the instance */
	DAT_CONN_QUAL conn_qual;   /* the qualifier that it listens on */
	DAT_EVD_HANDLE evd_handle; /* the EVD for its requests */
	DAT_PSP_FLAGS psp_flags;   /* who makes the endpoints */
} DAT_PSP_PARAM;

/* Selects the members of DAT_PSP_PARAM that dat_psp_query fills. */
typedef enum dat_psp_param_mask {
	DAT_PSP_FIELD_IA_HANDLE = 0x01,
	DAT_PSP_FIELD_CONN_QUAL = 0x02,
	DAT_PSP_FIELD_EVD_HANDLE = 0x04,
	DAT_PSP_FIELD_PSP_FLAGS = 0x08,
	DAT_PSP_FIELD_ALL = 0x0f,
} DAT_PSP_PARAM_MASK;

/* Parameters of a reserved service point, see dat_rsp_query. */
typedef struct dat_rsp_param {
	DAT_IA_HANDLE ia_handle;   /* the instance */
	DAT_CONN_QUAL conn_qual;   /* the qualifier that it listens on */
	DAT_EVD_HANDLE evd_handle; /* the EVD for its request */
	DAT_EP_HANDLE ep_handle;   /* the endpoint; DAT_HANDLE_NULL if the provider makes it */
} DAT_RSP_PARAM;

/* Selects the members of DAT_RSP_PARAM that dat_rsp_query fills. */
typedef enum dat_rsp_param_mask {
	DAT_RSP_FIELD_IA_HANDLE = 0x01,
	DAT_RSP_FIELD_CONN_QUAL = 0x02,
	DAT_RSP_FIELD_EVD_HANDLE = 0x04,
	DAT_RSP_FIELD_EP_HANDLE = 0x08,
	DAT_RSP_FIELD_ALL = 0x0f,
} DAT_RSP_PARAM_MASK;

/*
 * Parameters of a connection request, see dat_cr_query. What the pointers lead to is memory of the
 * provider, valid until the request is answered.
 *
 * Specification: connections.md, dat_cr_query.
 */
typedef struct dat_cr_param {
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr; /* address of the peer's adapter */
	DAT_PORT_QUAL remote_port_qual;		  /* local_port_qual of the peer's endpoint */
	/* bytes that the peer passed to its call; on soft adapters up to 512, also if that is more
	 * than max_private_data_size */
	DAT_COUNT private_data_size;
	DAT_PVOID private_data; /* the private data of the peer */
	/* the endpoint that comes with the request, of an RSP or of a PSP with
	 * DAT_PSP_PROVIDER_FLAG; otherwise DAT_HANDLE_NULL */
	DAT_EP_HANDLE local_ep_handle;
} DAT_CR_PARAM;

/* Selects the members of DAT_CR_PARAM that dat_cr_query fills. */
typedef enum dat_cr_param_mask {
	DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR = 0x01,
	DAT_CR_FIELD_REMOTE_PORT_QUAL = 0x02,
	DAT_CR_FIELD_PRIVATE_DATA_SIZE = 0x04,
	DAT_CR_FIELD_PRIVATE_DATA = 0x08,
	DAT_CR_FIELD_LOCAL_EP_HANDLE = 0x10,
	DAT_CR_FIELD_ALL = 0x1f,
} DAT_CR_PARAM_MASK;

/* ---- events ---- */

/*
 * The result of a data transfer or a bind.
 *
 * Every status other than DAT_DTO_SUCCESS and DAT_DTO_ERR_FLUSHED breaks the connection:
 * DAT_CONNECTION_EVENT_BROKEN follows, and everything outstanding is flushed. After the first
 * request that was not successful no later request of the connection is successful; the same holds
 * for receives. If the status is not DAT_DTO_SUCCESS, the content of the buffer of a receive or an
 * RDMA Read is undefined.
 *
 * Errors that can be seen when a request is posted are return codes of the post, which then has no
 * completion.
 *
 * Specification: transfers.md, Completion status.
 */
typedef enum dat_dto_completion_status {
	/* The transfer was carried out. After a Send the buffer is free, and the message reaches
	 * the peer's receive even if the sender disconnects now. After an RDMA Write the data is in
	 * the memory of the peer */
	DAT_DTO_SUCCESS = 0,
	/* the connection ended before the transfer was carried out, or it was posted to a
	 * disconnected endpoint. This is what remains of every request and receive at the end of a
	 * connection, and no error by itself */
	DAT_DTO_ERR_FLUSHED = 1,
	/* a receive: the message is longer than the buffer. The sender gets
	 * DAT_DTO_ERR_REMOTE_RESPONDER, except over iWARP, where it may see success */
	DAT_DTO_ERR_LOCAL_LENGTH = 2,
	/* the endpoint cannot process the request: its device reports an inconsistency. Not on the
	 * soft adapters */
	DAT_DTO_ERR_LOCAL_EP = 3,
	/* memory of this process could not be used when the transfer was carried out: its region
	 * was freed after the post, dat_ep_modify changed the protection zone, or the memory was
	 * unmapped (see dat_lmr_create) */
	DAT_DTO_ERR_LOCAL_PROTECTION = 4,
	/* the peer answered with something unexpected; it does not follow the protocol */
	DAT_DTO_ERR_BAD_RESPONSE = 5,
	/* the peer refused access to its memory: the key is unknown or was freed, the range is not
	 * inside the region or window, a privilege is missing, or its endpoint is in another
	 * protection zone. Nothing was transferred; over iWARP nothing outside the permitted range
	 */
	DAT_DTO_ERR_REMOTE_ACCESS = 6,
	/* the peer could not carry out the request for another reason. Most often a message was
	 * longer than the receive at the peer, or the memory of that receive was freed */
	DAT_DTO_ERR_REMOTE_RESPONDER = 7,
	/* the transport failed, or the peer does not answer any more. Not on the soft adapters,
	 * where what is outstanding when a peer dies is flushed */
	DAT_DTO_ERR_TRANSPORT = 8,
	/* a Send: the peer had posted no receive within the time that the setting rnr_timeout_ms
	 * allows, see opendat(7). By default a message waits without limit */
	DAT_DTO_ERR_RECEIVER_NOT_READY = 9,
	/* only part of a packet arrived; never with the providers of OpenDAT */
	DAT_DTO_ERR_PARTIAL_PACKET = 10,
	/* a bind failed after it was posted; on devices with memory windows only */
	DAT_RMR_OPERATION_FAILED = 11,
} DAT_DTO_COMPLETION_STATUS;

/* Names of earlier versions. */
#define DAT_DTO_LENGTH_ERROR DAT_DTO_ERR_LOCAL_LENGTH
#define DAT_DTO_FAILURE DAT_DTO_ERR_FLUSHED

/* Names for the status of a bind. */
#define DAT_RMR_BIND_COMPLETION_STATUS DAT_DTO_COMPLETION_STATUS
#define DAT_RMR_BIND_SUCCESS DAT_DTO_SUCCESS
#define DAT_RMR_BIND_FAILURE DAT_DTO_ERR_FLUSHED

/*
 * The data of DAT_DTO_COMPLETION_EVENT. A receive, a Send or an RDMA operation has ended. When the
 * event is dequeued the provider does not touch the buffer any more.
 *
 * Specification: transfers.md, Completion event.
 */
typedef struct dat_dto_completion_event_data {
	/* the endpoint of the transfer; for a buffer of a shared receive queue the one that
	 * received the message. It may have been freed meanwhile */
	DAT_EP_HANDLE ep_handle;
	DAT_DTO_COOKIE user_cookie;	  /* the argument of the post */
	DAT_DTO_COMPLETION_STATUS status; /* the result */
	/* bytes, if the status is DAT_DTO_SUCCESS: the size of the message for a receive, otherwise
	 * what was posted. The spelling is that of the specification */
	DAT_VLEN transfered_length;
} DAT_DTO_COMPLETION_EVENT_DATA;

/*
 * The data of DAT_RMR_BIND_COMPLETION_EVENT: a bind has ended.
 *
 * Specification: transfers.md, Completion event.
 */
typedef struct dat_rmr_bind_completion_event_data {
	DAT_RMR_HANDLE rmr_handle;	  /* the RMR */
	DAT_RMR_COOKIE user_cookie;	  /* the argument of dat_rmr_bind */
	DAT_DTO_COMPLETION_STATUS status; /* the result; the key is valid if DAT_DTO_SUCCESS */
} DAT_RMR_BIND_COMPLETION_EVENT_DATA;

/* A service point of either kind. A program knows which kind it listens with. */
typedef union dat_sp_handle {
	DAT_RSP_HANDLE rsp_handle; /* a reserved service point */
	DAT_PSP_HANDLE psp_handle; /* a public service point */
} DAT_SP_HANDLE;

/*
 * The data of DAT_CONNECTION_REQUEST_EVENT. A peer requests a connection. Answer the request with
 * dat_cr_accept or dat_cr_reject, or pass it on with dat_cr_handoff.
 *
 * Specification: connections.md, DAT_CONNECTION_REQUEST_EVENT.
 */
typedef struct dat_cr_arrival_event_data {
	DAT_SP_HANDLE sp_handle;		 /* the service point at which it arrived */
	DAT_IA_ADDRESS_PTR local_ia_address_ptr; /* the address of this adapter */
	DAT_CONN_QUAL conn_qual;		 /* the qualifier of the service point */
	/* the request; dat_cr_query returns the peer and its private data. Valid until it is
	 * answered, even if the peer gives up */
	DAT_CR_HANDLE cr_handle;
} DAT_CR_ARRIVAL_EVENT_DATA;

/*
 * The data of the events DAT_CONNECTION_EVENT_. They go to the connect EVD of the endpoint.
 *
 * Specification: connections.md, Event structure and rules for all of them.
 */
typedef struct dat_connection_event_data {
	DAT_EP_HANDLE ep_handle; /* the endpoint whose connection changed */
	/* bytes; 0 in every event except DAT_CONNECTION_EVENT_ESTABLISHED at the side that
	 * connected; of a peer other than OpenDAT over TCP up to 512, also if that is more than
	 * max_private_data_size */
	DAT_COUNT private_data_size;
	/* what the peer passed to dat_cr_accept. The memory belongs to the provider and is valid
	 * until dat_ep_reset or dat_ep_free; undefined if the size is 0 */
	DAT_PVOID private_data;
} DAT_CONNECTION_EVENT_DATA;

/*
 * The data of the events DAT_ASYNC_ERROR_. They report
 * what is not the result of a request, to the EVD for asynchronous events of the instance. The type
 * of the object, see dat_get_handle_type, says which enumeration the reason belongs to:
 * DAT_IA_ASYNC_ERROR_REASON, DAT_EP_ASYNC_ERROR_REASON, DAT_EVD_ASYNC_ERROR_REASON,
 * DAT_SRQ_ASYNC_ERROR_REASON, DAT_LMR_ASYNC_ERROR_REASON, DAT_RMR_ASYNC_ERROR_REASON or
 * DAT_PZ_ASYNC_ERROR_REASON.
 *
 * Specification: connections.md, Asynchronous events.
 */
typedef struct dat_asynch_error_event_data {
	DAT_HANDLE dat_handle; /* the object concerned; the instance if it is no single object */
	DAT_COUNT reason;      /* the reason, by the type of the object */
} DAT_ASYNCH_ERROR_EVENT_DATA;

/* Reasons of asynchronous errors of an instance. */
typedef enum ia_async_error_reason {
	/* the device has failed, see DAT_ASYNC_ERROR_IA_CATASTROPHIC */
	DAT_IA_CATASTROPHIC_ERROR = 0,
	/* a completion queue of the device has failed; DAT_IA_CATASTROPHIC_ERROR follows */
	DAT_IA_OTHER_ERROR = 1,
} DAT_IA_ASYNC_ERROR_REASON;

/* Reasons of asynchronous errors of an endpoint. */
typedef enum ep_async_error_reason {
	/* a transfer took too long; the providers of OpenDAT never raise it */
	DAT_EP_TRANSFER_TO_ERROR = 0,
	/* another error; the providers of OpenDAT never raise it, see DAT_CONNECTION_EVENT_BROKEN
	 */
	DAT_EP_OTHER_ERROR = 1,
	/* the endpoint holds more receive buffers than its soft high watermark, once each time
	 * dat_ep_set_watermark sets it. The event number is
	 * DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, since the specification has none for it */
	DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT = 2,
} DAT_EP_ASYNC_ERROR_REASON;

/* Reasons of asynchronous errors of an EVD. */
typedef enum evd_async_error_reason {
	DAT_EVD_OVERFLOW_ERROR = 0, /* events were lost, see DAT_ASYNC_ERROR_EVD_OVERFLOW */
	DAT_EVD_OTHER_ERROR = 1,    /* another error; the providers of OpenDAT never raise it */
} DAT_EVD_ASYNC_ERROR_REASON;

/* Reasons of asynchronous errors of a shared receive queue. */
typedef enum srq_async_error_reason {
	/* a transfer took too long; the providers of OpenDAT never raise it */
	DAT_SRQ_TRANSFER_TO_ERROR = 0,
	/* the queue has failed; the providers of OpenDAT never raise it */
	DAT_SRQ_OTHER_ERROR = 1,
	/* fewer buffers than the low watermark are left, once each time dat_srq_set_lw sets it. The
	 * event number is DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, since the specification has none
	 * for it */
	DAT_SRQ_LOW_WATERMARK_EVENT = 2,
} DAT_SRQ_ASYNC_ERROR_REASON;

/* Reasons of asynchronous errors of a memory region. */
typedef enum lmr_async_error_reason {
	DAT_LMR_OTHER_ERROR = 0, /* an error; the providers of OpenDAT never raise it */
} DAT_LMR_ASYNC_ERROR_REASON;

/* Reasons of asynchronous errors of an RMR. */
typedef enum rmr_async_error_reason {
	DAT_RMR_OTHER_ERROR = 0, /* an error; the providers of OpenDAT never raise it */
} DAT_RMR_ASYNC_ERROR_REASON;

/* Reasons of asynchronous errors of a protection zone. */
typedef enum pz_async_error_reason {
	DAT_PZ_OTHER_ERROR = 0, /* an error; the providers of OpenDAT never raise it */
} DAT_PZ_ASYNC_ERROR_REASON;

/* The data of DAT_SOFTWARE_EVENT, an event of dat_evd_post_se. */
typedef struct dat_software_event_data {
	DAT_PVOID pointer; /* a value of the consumer, delivered unchanged */
} DAT_SOFTWARE_EVENT_DATA;

/*
 * Kinds of events. The number says which member of DAT_EVENT_DATA is valid.
 *
 * Each attempt to connect ends with exactly one event: DAT_CONNECTION_EVENT_ESTABLISHED, a failure,
 * or DAT_CONNECTION_EVENT_DISCONNECTED if dat_ep_disconnect ends it. Each established connection
 * ends, on each side, with exactly one of DAT_CONNECTION_EVENT_DISCONNECTED and
 * DAT_CONNECTION_EVENT_BROKEN. An endpoint that was freed gets no more events. After a failure and
 * after the end the endpoint is in DAT_EP_STATE_DISCONNECTED, and all its completions are queued
 * before the event.
 *
 * Specification: connections.md, connection and asynchronous events.
 */
typedef enum dat_event_number {
	/* a receive, a Send or an RDMA operation has ended; dto_completion_event_data. On the
	 * receive EVD or the request EVD of the endpoint */
	DAT_DTO_COMPLETION_EVENT = 0x00001,
	/* a bind has ended; rmr_completion_event_data. On the request EVD of the endpoint */
	DAT_RMR_BIND_COMPLETION_EVENT = 0x01001,
	/* a peer requests a connection; cr_arrival_event_data. On the EVD of the service point. If
	 * that EVD is full, the request is refused and there is no event */
	DAT_CONNECTION_REQUEST_EVENT = 0x02001,
	/* The connection is established and requests can be posted; connect_event_data, as for all
	 * connection events. On both sides. At the side that connected it carries the private data
	 * of dat_cr_accept */
	DAT_CONNECTION_EVENT_ESTABLISHED = 0x04001,
	/* at the connecting side: the program of the peer called dat_cr_reject */
	DAT_CONNECTION_EVENT_PEER_REJECTED = 0x04002,
	/* at the connecting side: refused without the program of the peer. Nobody listens on the
	 * qualifier, the EVD of the service point is full, its EVD or instance was destroyed before
	 * an answer, or the set-up failed for a reason that no other event names */
	DAT_CONNECTION_EVENT_NON_PEER_REJECTED = 0x04003,
	/* at the accepting side, after dat_cr_accept: the connection cannot be completed. The peer
	 * has given up (time-out, dat_ep_disconnect or dat_ep_free) or the transport failed */
	DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR = 0x04004,
	/* the connection has ended because one of the two sides called dat_ep_disconnect, freed its
	 * endpoint or closed its instance; also after dat_ep_disconnect during an attempt. On RDMA
	 * devices also when the process of the peer has died */
	DAT_CONNECTION_EVENT_DISCONNECTED = 0x04005,
	/* The connection has ended because of an error: a request or receive failed (the completion
	 * with its status is queued before), RDMA of the peer was not permitted, the hard high
	 * watermark was exceeded, or the peer died or cannot be reached. On both sides, but on RDMA
	 * devices the other side may get DAT_CONNECTION_EVENT_DISCONNECTED */
	DAT_CONNECTION_EVENT_BROKEN = 0x04006,
	/* at the connecting side: the time-out of dat_ep_connect has expired */
	DAT_CONNECTION_EVENT_TIMED_OUT = 0x04007,
	/* at the connecting side: the host of the address cannot be reached */
	DAT_CONNECTION_EVENT_UNREACHABLE = 0x04008,
	/* Events were lost because an EVD was full; asynch_error_event_data, as for all
	 * asynchronous errors. The object is that EVD. What was queued before can still be taken.
	 * There is one event for a run of losses; the next one comes after an event was taken from
	 * the EVD */
	DAT_ASYNC_ERROR_EVD_OVERFLOW = 0x08001,
	/* the device has failed and the instance is unusable: its connections break. Only on RDMA
	 * devices; close the instance */
	DAT_ASYNC_ERROR_IA_CATASTROPHIC = 0x08002,
	/* an endpoint has failed and this cannot be reported by its events; the providers of
	 * OpenDAT never raise it */
	DAT_ASYNC_ERROR_EP_BROKEN = 0x08003,
	/* a transfer took too long; the providers of OpenDAT never raise it */
	DAT_ASYNC_ERROR_TIMED_OUT = 0x08004,
	/* A watermark was passed, with the reason DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT for an endpoint
	 * and DAT_SRQ_LOW_WATERMARK_EVENT for a shared receive queue; no error. With
	 * DAT_IA_OTHER_ERROR a completion queue of the device has failed */
	DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR = 0x08005,
	/* an event of dat_evd_post_se; software_event_data */
	DAT_SOFTWARE_EVENT = 0x10001,
} DAT_EVENT_NUMBER;

/* The data of an event. The event number says which member is valid. */
typedef union dat_event_data {
	DAT_DTO_COMPLETION_EVENT_DATA dto_completion_event_data; /* DAT_DTO_COMPLETION_EVENT */
	/* DAT_RMR_BIND_COMPLETION_EVENT */
	DAT_RMR_BIND_COMPLETION_EVENT_DATA rmr_completion_event_data;
	DAT_CR_ARRIVAL_EVENT_DATA cr_arrival_event_data;     /* DAT_CONNECTION_REQUEST_EVENT */
	DAT_CONNECTION_EVENT_DATA connect_event_data;	     /* events DAT_CONNECTION_EVENT_ */
	DAT_ASYNCH_ERROR_EVENT_DATA asynch_error_event_data; /* events DAT_ASYNC_ERROR_ */
	DAT_SOFTWARE_EVENT_DATA software_event_data;	     /* DAT_SOFTWARE_EVENT */
} DAT_EVENT_DATA;

/*
 * An event, see dat_evd_dequeue and dat_evd_wait. It is a copy: the program owns the structure.
 *
 * Events of one kind from one object are delivered in their order, each of them once. There is no
 * order between events of different objects or kinds, even on one EVD.
 *
 * Specification: events.md, Event streams and delivery.
 */
typedef struct dat_event {
	DAT_EVENT_NUMBER event_number; /* what has happened */
	DAT_EVD_HANDLE evd_handle;     /* the EVD that the event was taken from */
	DAT_EVENT_DATA event_data;     /* the data, by event_number */
} DAT_EVENT;

/* ---- registry ---- */

/*
 * The key of an adapter in the registry, see dat_registry_list_providers. A name may have several
 * entries, which differ in version or thread safety; dat_ia_open selects one of them.
 *
 * Specification: registry.md, dat_ia_open.
 */
typedef struct dat_provider_info {
	char ia_name[DAT_NAME_MAX_LENGTH]; /* the name of the adapter, terminated by NUL */
	DAT_UINT32 dapl_version_major;	   /* major version of the API */
	DAT_UINT32 dapl_version_minor;	   /* minor version of the API */
	DAT_BOOLEAN is_thread_safe;	   /* several threads may use it at the same time */
} DAT_PROVIDER_INFO;

/*
 * Rules for every call.
 *
 * A call that fails changes nothing and writes no output, unless its description says otherwise.
 * Errors are checked in this order: handles, parameters, states, resources.
 *
 * Success is DAT_SUCCESS, 0. Every other code except DAT_QUEUE_EMPTY has DAT_CLASS_ERROR set. Only
 * the type of a code, which DAT_GET_TYPE extracts, is the same with every provider. The subtype,
 * which DAT_GET_SUBTYPE extracts, describes the cause. Any call may return DAT_INTERNAL_ERROR if
 * the provider detects an internal error.
 *
 * "No live object" means that a handle is DAT_HANDLE_NULL, belongs to an object of another type, or
 * belongs to an object that was freed. All handles of one call belong to the same instance of an
 * adapter.
 *
 * "Thread safe" applies to the providers of OpenDAT. For other providers see is_thread_safe. A call
 * that does not block makes no system call that waits.
 */

/* ---- calls: interface adapter ---- */

/*
 * Open an adapter by name, API version and thread safety. Programs call the macro dat_ia_open,
 * which adds the last three arguments. The first open of a name that dat.conf lists loads its
 * provider library.
 *
 * provider [in]               the name, less than DAT_NAME_MAX_LENGTH characters; a prefix
 *                             RO_AWARE_ is ignored
 * asynch_evd_min_qlen [in]    events, from 1; the minimum length of the EVD that the call
 *                             creates, otherwise ignored
 * asynch_evd_handle [inout]   DAT_HANDLE_NULL: create an EVD for asynchronous events and
 *                             return it here; an EVD with DAT_EVD_ASYNC_FLAG of an open
 *                             instance of the same adapter: use it; DAT_EVD_ASYNC_EXISTS: use
 *                             none, DAT_EVD_OUT_OF_SCOPE is returned. Unchanged on failure
 * ia_handle [out]             the new instance, valid until dat_ia_close; DAT_HANDLE_NULL on
 *                             failure
 * dat_major [in]              API version that the caller is built for
 * dat_minor [in]              the minimum minor version
 * thread_safety [in]          must equal that of the registry entry; built-in adapters accept
 *                             both
 *
 * Returns DAT_SUCCESS, or
 *   DAT_PROVIDER_NOT_FOUND / DAT_NAME_NOT_REGISTERED:
 *     no such adapter, or none of its libraries can be loaded
 *   DAT_PROVIDER_NOT_FOUND / DAT_MAJOR_NOT_FOUND: the name exists, but not with that major version
 *   DAT_PROVIDER_NOT_FOUND / DAT_THREAD_SAFETY_NOT_FOUND:
 *     no adapter of that name and version has that thread safety
 *   DAT_PROVIDER_NOT_FOUND / DAT_MINOR_NOT_FOUND:
 *     none of these has that minor version or a later one
 *   DAT_INVALID_PARAMETER, provider: NULL, or DAT_NAME_MAX_LENGTH characters or more
 *   DAT_INVALID_PARAMETER, asynch_evd_min_qlen: not positive, and an EVD must be created
 *   DAT_INVALID_PARAMETER, asynch_evd_handle:
 *     NULL, or an EVD that takes receives of an endpoint with
 *     DAT_COMPLETION_SOLICITED_WAIT_FLAG
 *   DAT_INVALID_PARAMETER, ia_handle: NULL
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_ASYNC: the EVD passed in cannot be used
 *   DAT_INSUFFICIENT_RESOURCES: memory, descriptors or the device are exhausted
 *   DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_TEVD: the EVD would be longer than max_evd_qlen
 * Thread safe. May block to load a library and to open the device. Specification:
 * registry.md, dat_ia_open.
 */
extern DAT_RETURN dat_ia_openv(const DAT_NAME_PTR provider, DAT_COUNT asynch_evd_min_qlen,
			       DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle,
			       DAT_UINT32 dat_major, DAT_UINT32 dat_minor,
			       DAT_BOOLEAN thread_safety);

/*
 * Open an adapter by name. This is a macro. It calls dat_ia_openv with the API version and thread
 * safety of the translation unit: DAT_VERSION_MAJOR, DAT_VERSION_MINOR and DAT_THREADSAFE. The
 * first open of a name that dat.conf lists loads its provider library.
 *
 * Thread safe. May block to load a library and to open the device. Specification:
 * registry.md, dat_ia_open.
 */
#define dat_ia_open(provider, asynch_evd_min_qlen, asynch_evd_handle, ia_handle)                   \
	dat_ia_openv((provider), (asynch_evd_min_qlen), (asynch_evd_handle), (ia_handle),          \
		     DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_THREADSAFE)

/*
 * Query the attributes of an adapter and of its provider.
 *
 * ia_handle [in]             the instance
 * async_evd_handle [out]     its asynchronous EVD, or DAT_EVD_OUT_OF_SCOPE if it was opened
 *                            with DAT_EVD_ASYNC_EXISTS; may be NULL
 * ia_attr_mask [in]          DAT_IA_FIELD_ bits of the members to fill
 * ia_attr [out]              filled as selected by the mask; pointers in it are valid while the
 *                            instance is open; may be NULL if the mask is 0
 * provider_attr_mask [in]    DAT_PROVIDER_FIELD_ bits of the members to fill
 * provider_attr [out]        as ia_attr
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_PARAMETER, ia_attr_mask, provider_attr_mask: a bit that is not defined
 *   DAT_INVALID_PARAMETER, ia_attr, provider_attr: NULL, and the mask is not 0
 * Thread safe. Does not block. Specification: registry.md, dat_ia_query.
 */
extern DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
			       DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr,
			       DAT_PROVIDER_ATTR_MASK provider_attr_mask,
			       DAT_PROVIDER_ATTR *provider_attr);

/*
 * Close an instance of an adapter. An abrupt close destroys every object of the instance and
 * breaks its connections. Waits on its EVDs return DAT_ABORT, and waits on its CNOs return success
 * with DAT_HANDLE_NULL. A graceful close is refused while the consumer has objects on the instance;
 * the EVD for asynchronous events that dat_ia_open created does not count.
 *
 * ia_handle [in]      the instance; invalid after success
 * close_flags [in]    DAT_CLOSE_ABRUPT_FLAG or DAT_CLOSE_GRACEFUL_FLAG
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_PARAMETER, close_flags: neither of the two flags
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_IA_IN_USE:
 *     graceful, and objects exist, or another instance uses the asynchronous EVD; nothing is
 *     changed
 * Thread safe. Does not wait for peers or completions, but waits for copies in progress, as
 * dat_lmr_free does. Specification: registry.md, dat_ia_close.
 */
extern DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags);

/* ---- calls: any object ---- */

/*
 * Store a value of the consumer with an object. It replaces the previous value. The library does
 * not interpret it.
 *
 * dat_handle [in]    an object of any type, an adapter included
 * context [in]       any 64 bits; a null pointer clears the value
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live object
 * Thread safe. Does not block. Specification: registry.md, dat_set_consumer_context.
 */
extern DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context);

/*
 * Return the value stored with an object; all bits are zero if there is none.
 *
 * dat_handle [in]    an object of any type, an adapter included
 * context [out]      the value
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live object
 *   DAT_INVALID_PARAMETER, context: NULL
 * Thread safe. Does not block. Specification: registry.md, dat_get_consumer_context.
 */
extern DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context);

/*
 * Return the type of the object of a handle.
 *
 * dat_handle [in]     an object of any type, an adapter included
 * handle_type [out]   its type
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live object
 *   DAT_INVALID_PARAMETER, handle_type: NULL
 * Thread safe. Does not block. Specification: registry.md, dat_get_handle_type.
 */
extern DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type);

/* ---- calls: connection requests ---- */

/*
 * Query the peer and the private data of a connection request.
 *
 * cr_handle [in]        an unanswered connection request
 * cr_param_mask [in]    DAT_CR_FIELD_ bits of the members to fill
 * cr_param [out]        filled as selected by the mask; its pointers are valid until the request is
 *                       answered
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CR: no live request
 *   DAT_INVALID_PARAMETER, cr_param_mask: a bit that is not defined
 *   DAT_INVALID_PARAMETER, cr_param: NULL
 * Thread safe. Does not block. Specification: connections.md, dat_cr_query.
 */
extern DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
			       DAT_CR_PARAM *cr_param);

/*
 * Accept a connection request. Success invalidates the request. A connection event on the EVD of
 * the endpoint reports the result.
 *
 * cr_handle [in]            the request
 * ep_handle [in]            an unconnected endpoint of the same instance; DAT_HANDLE_NULL if
 *                           the request has its own
 * private_data_size [in]    bytes; 0 to max_private_data_size of the provider; if it is more than
 *                           that of a peer that uses OpenDAT, the connection is not made
 * private_data [in]         copied before the call returns; may be NULL if the size is 0
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CR: no live request
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP:
 *     no live endpoint of the instance, or one without a protection zone or a connect EVD; an
 *     endpoint although the request has its own; none although the request has none
 *   DAT_INVALID_PARAMETER, private_data_size: negative, or more than max_private_data_size
 *   DAT_INVALID_PARAMETER, private_data: NULL, and the size is not 0
 *   DAT_INVALID_STATE: the endpoint is not unconnected; the subtype is its state
 *   DAT_INSUFFICIENT_RESOURCES: resources are exhausted; the request is still unanswered
 * Thread safe. Does not block. Specification: connections.md, dat_cr_accept.
 */
extern DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
				DAT_COUNT private_data_size, const DAT_PVOID private_data);

/*
 * Reject a connection request. This invalidates the request. The peer receives
 * DAT_CONNECTION_EVENT_PEER_REJECTED.
 *
 * cr_handle [in]    the request
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CR: no live request
 * Thread safe. Does not block. Specification: connections.md, dat_cr_reject.
 */
extern DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle);

/*
 * Pass a connection request to another service point of the same adapter address.
 *
 * cr_handle [in]    the request; invalid after success
 * handoff [in]      connection qualifier of the other service point
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CR: no live request
 *   DAT_INVALID_PARAMETER, handoff:
 *     no service point of this process listens there, or its EVD is full; the request is still
 *     unanswered
 * Thread safe. Blocks until the request has been passed. Specification: connections.md,
 * dat_cr_handoff.
 */
extern DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff);

/* ---- calls: event dispatchers ---- */

/*
 * Change the length of an EVD. Queued events and their order do not change.
 *
 * evd_handle [in]      the EVD
 * evd_min_qlen [in]    events, from 1 to max_evd_qlen
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live EVD
 *   DAT_INVALID_PARAMETER, evd_min_qlen: not positive, or more than max_evd_qlen
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_EVD_WAITER: a thread waits on it
 *   DAT_INVALID_STATE: more events are queued than the new length allows
 *   DAT_INSUFFICIENT_RESOURCES: memory is exhausted; nothing is changed
 * Thread safe. Does not block. Specification: events.md, dat_evd_resize.
 */
extern DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen);

/*
 * Post a software event.
 *
 * evd_handle [in]    an EVD with DAT_EVD_SOFTWARE_FLAG
 * event [in]         copied; event_number is DAT_SOFTWARE_EVENT
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live EVD
 *   DAT_INVALID_PARAMETER, evd_handle: an EVD without DAT_EVD_SOFTWARE_FLAG
 *   DAT_INVALID_PARAMETER, event: NULL, or another event_number
 *   DAT_QUEUE_FULL: the queue is full; the event is not queued
 * Thread safe. Does not block. Specification: events.md, dat_evd_post_se.
 */
extern DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event);

/*
 * Take the first event from an EVD.
 *
 * evd_handle [in]    the EVD
 * event [out]        the event; undefined if there is none
 *
 * Returns DAT_SUCCESS, or
 *   DAT_QUEUE_EMPTY: there is none. This code has no class bit, so compare it directly
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live EVD
 *   DAT_INVALID_PARAMETER, event: NULL
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_EVD_WAITER: a thread waits on it
 * Thread safe. Does not block. Specification: events.md, dat_evd_dequeue.
 */
extern DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event);

/*
 * Query the parameters of an EVD.
 *
 * evd_handle [in]        the EVD
 * evd_param_mask [in]    DAT_EVD_FIELD_ bits of the members to fill
 * evd_param [out]        filled as selected by the mask
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live EVD
 *   DAT_INVALID_PARAMETER, evd_param_mask: a bit that is not defined
 *   DAT_INVALID_PARAMETER, evd_param: NULL
 * Thread safe. Does not block. Specification: events.md, dat_evd_query.
 */
extern DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
				DAT_EVD_PARAM *evd_param);

/*
 * Destroy an EVD and the events on it.
 *
 * evd_handle [in]    the EVD; invalid after success
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live EVD
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_EVD_IN_USE:
 *     an endpoint or a service point uses it, or it is the asynchronous EVD of an open instance
 * Thread safe. Does not block; a waiter returns DAT_ABORT. Specification: events.md,
 * dat_evd_free.
 */
extern DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle);

/* ---- calls: endpoints ---- */

/*
 * Create an endpoint, one end of a future connection.
 *
 * Event streams of all kinds may share an EVD, with one exception: receives of endpoints with
 * DAT_COMPLETION_SOLICITED_WAIT_FLAG in recv_completion_flags share an EVD only with each other.
 *
 * ia_handle [in]                        the instance
 * pz_handle [in]                        the protection zone of its buffers; DAT_HANDLE_NULL if
 *                                       dat_ep_modify sets it before it is used
 * recv_completion_evd_handle [in]       EVD for completed receives, or DAT_HANDLE_NULL
 * request_completion_evd_handle [in]    EVD for completed sends, RDMA and binds, or
 *                                       DAT_HANDLE_NULL
 * connect_evd_handle [in]               EVD for connection events, or DAT_HANDLE_NULL
 * ep_attributes [in]                    copied; NULL selects the defaults of DAT_EP_ATTR. In a
 *                                       structure, 0 is a default only where DAT_EP_ATTR says so
 * ep_handle [out]                       the endpoint, unconnected; valid until dat_ep_free
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_PZ: no protection zone of the instance
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_RECV:
 *     recv_completion_evd_handle is no EVD of the instance, or one without DAT_EVD_DTO_FLAG
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_REQUEST:
 *     request_completion_evd_handle is no EVD of the instance, or one without DAT_EVD_DTO_FLAG
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_CONN:
 *     connect_evd_handle is no EVD of the instance, or one without DAT_EVD_CONNECTION_FLAG
 *   DAT_INVALID_PARAMETER, ep_attributes:
 *     a value that DAT_EP_ATTR does not allow, a queue without its EVD or the reverse, or
 *     completion flags that conflict with another stream of the same EVD
 *   DAT_INVALID_PARAMETER, ep_handle: NULL
 *   DAT_MODEL_NOT_SUPPORTED: a quality of service that the provider lacks
 *   DAT_INSUFFICIENT_RESOURCES:
 *     memory or device objects are exhausted, or a limit of the adapter is reached
 * Thread safe. Does not block. Specification: endpoints.md, dat_ep_create.
 */
extern DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				DAT_EVD_HANDLE recv_completion_evd_handle,
				DAT_EVD_HANDLE request_completion_evd_handle,
				DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes,
				DAT_EP_HANDLE *ep_handle);

/*
 * Query the parameters and attributes of an endpoint.
 *
 * ep_handle [in]        the endpoint
 * ep_param_mask [in]    DAT_EP_FIELD_ bits of the members to fill; other bits are ignored
 * ep_param [out]        filled as selected by the mask; its addresses are valid until
 *                       dat_ep_free
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, ep_param: NULL
 * Thread safe. Does not block. Specification: endpoints.md, dat_ep_query.
 */
extern DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			       DAT_EP_PARAM *ep_param);

/*
 * Change parameters or attributes of an endpoint that is not connected.
 *
 * ep_handle [in]        the endpoint
 * ep_param_mask [in]    DAT_EP_FIELD_ bits of the members to change
 * ep_param [in]         the new values; copied
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, ep_param_mask:
 *     a bit that is not defined, or a member that cannot be changed
 *   DAT_INVALID_PARAMETER, ep_param:
 *     NULL, a value or handle that dat_ep_create would refuse, or fewer receives than posted
 *   DAT_INVALID_STATE: not allowed in the state of the endpoint, which is the subtype
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_EP_EVD_RECV:
 *     recv_completion_flags, and receives are posted
 *   DAT_INSUFFICIENT_RESOURCES: memory is exhausted; nothing is changed
 * Thread safe. Does not block. Specification: endpoints.md, dat_ep_modify.
 */
extern DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
				const DAT_EP_PARAM *ep_param);

/*
 * Request a connection to a peer. A connection event on the connect EVD reports the result.
 *
 * ep_handle [in]             an unconnected endpoint with a protection zone and a connect EVD
 * remote_ia_address [in]     the address of the peer's adapter; its port is ignored; read
 *                            before the call returns
 * remote_conn_qual [in]      the service at that address
 * timeout [in]               the longest time for the set-up in microseconds, from 1;
 *                            DAT_TIMEOUT_INFINITE for no limit
 * private_data_size [in]     bytes; 0 to max_private_data_size of the provider, which is more
 *                            over TCP with the setting header=off (opendat(7))
 * private_data [in]          copied before the call returns; may be NULL if the size is 0
 * quality_of_service [in]    one that is in dat_qos_supported of the provider
 * connect_flags [in]         DAT_CONNECT_DEFAULT_FLAG or DAT_CONNECT_MULTIPATH_FLAG
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_CONN: the endpoint has no connect EVD
 *   DAT_INVALID_PARAMETER, remote_ia_address: NULL
 *   DAT_INVALID_PARAMETER, timeout: 0
 *   DAT_INVALID_PARAMETER, private_data_size: negative, or more than max_private_data_size
 *   DAT_INVALID_PARAMETER, private_data: NULL, and the size is not 0
 *   DAT_INVALID_PARAMETER, connect_flags: a flag that is not defined
 *   DAT_INVALID_STATE: the endpoint is not unconnected; the subtype is its state
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_EP_NOTREADY: the endpoint has no protection zone
 *   DAT_INVALID_ADDRESS / DAT_INVALID_ADDRESS_UNSUPPORTED: an address of an unsupported kind
 *   DAT_INVALID_ADDRESS / DAT_INVALID_ADDRESS_UNREACHABLE: an address without a route
 *   DAT_MODEL_NOT_SUPPORTED: a quality of service or a flag that the provider lacks
 *   DAT_INSUFFICIENT_RESOURCES: resources are exhausted
 * Thread safe. Does not block. Specification: connections.md, dat_ep_connect.
 */
extern DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
				 DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
				 DAT_COUNT private_data_size, const DAT_PVOID private_data,
				 DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags);

/*
 * Request a connection to the peer of another endpoint. The result is reported as that of
 * dat_ep_connect.
 *
 * ep_handle [in]             as in dat_ep_connect
 * ep_dup_handle [in]         a connected endpoint of the same instance
 * timeout [in]               as in dat_ep_connect
 * private_data_size [in]     bytes; 0 to max_private_data_size of the provider
 * private_data [in]          copied before the call returns; may be NULL if the size is 0
 * quality_of_service [in]    as in dat_ep_connect
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: one of the two is not a live endpoint
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_CONN: the endpoint has no connect EVD
 *   DAT_INVALID_PARAMETER, timeout: 0
 *   DAT_INVALID_PARAMETER, private_data_size: negative, or more than max_private_data_size
 *   DAT_INVALID_PARAMETER, private_data: NULL, and the size is not 0
 *   DAT_INVALID_STATE:
 *     ep_handle is not unconnected, or ep_dup_handle is not connected; the subtype is its state
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_EP_NOTREADY: the endpoint has no protection zone
 *   DAT_MODEL_NOT_SUPPORTED: a quality of service that the provider lacks
 *   DAT_INSUFFICIENT_RESOURCES: resources are exhausted
 * Thread safe. Does not block. Specification: connections.md, dat_ep_dup_connect.
 */
extern DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
				     DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
				     const DAT_PVOID private_data, DAT_QOS quality_of_service);

/*
 * End a connection or a connection attempt. It is not an error if it has ended already.
 * DAT_CONNECTION_EVENT_DISCONNECTED follows.
 *
 * ep_handle [in]      the endpoint
 * close_flags [in]    DAT_CLOSE_GRACEFUL_FLAG: after the posted requests;
 *                     DAT_CLOSE_ABRUPT_FLAG: at once, flushing them
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, close_flags: neither of the two flags
 *   DAT_INVALID_STATE: never connected, or reserved; the subtype is the state
 *   DAT_INSUFFICIENT_RESOURCES: resources are exhausted
 * Thread safe. Does not block. Specification: connections.md, dat_ep_disconnect.
 */
extern DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags);

/*
 * Send a message.
 *
 * ep_handle [in]           the endpoint
 * num_segments [in]        0 to max_request_iov of the endpoint
 * local_iov [in]           the message; the triplets are read before the call returns, the
 *                          memory is in use until the completion; may be NULL for 0 segments
 * user_cookie [in]         returned with the completion
 * completion_flags [in]    DAT_COMPLETION_ flags except DAT_COMPLETION_EVD_THRESHOLD_FLAG;
 *                          DAT_COMPLETION_UNSIGNALLED_FLAG only if request_completion_flags of
 *                          the endpoint has it
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, num_segments: negative, or more than max_request_iov of the endpoint
 *   DAT_INVALID_PARAMETER, local_iov:
 *     NULL, more than max_message_size of the endpoint, or outside its region
 *   DAT_INVALID_PARAMETER, completion_flags: a flag that is not allowed
 *   DAT_PROTECTION_VIOLATION / DAT_PROTECTION_READ: a region of another protection zone
 *   DAT_PRIVILEGES_VIOLATION / DAT_PRIVILEGES_READ: no live region, or without local read
 *   DAT_INVALID_STATE: the endpoint is neither connected nor disconnected; the subtype is its state
 *   DAT_INSUFFICIENT_RESOURCES:
 *     max_request_dtos are outstanding, binds included, or the endpoint has no request EVD
 * Thread safe. Does not block. Specification: transfers.md, dat_ep_post_send.
 */
extern DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				   DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				   DAT_COMPLETION_FLAGS completion_flags);

/*
 * Post a buffer for a future message. Allowed in every state of the endpoint.
 *
 * ep_handle [in]           an endpoint without a shared receive queue
 * num_segments [in]        0 to max_recv_iov of the endpoint
 * local_iov [in]           the buffer; the triplets are read before the call returns, the
 *                          memory is in use until the completion; may be NULL for 0 segments
 * user_cookie [in]         returned with the completion
 * completion_flags [in]    DAT_COMPLETION_DEFAULT_FLAG, or DAT_COMPLETION_UNSIGNALLED_FLAG if
 *                          that is recv_completion_flags of the endpoint
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, ep_handle: an endpoint with a shared receive queue
 *   DAT_INVALID_PARAMETER, num_segments: negative, or more than max_recv_iov of the endpoint
 *   DAT_INVALID_PARAMETER, local_iov: NULL, or outside its region
 *   DAT_INVALID_PARAMETER, completion_flags: a flag that is not allowed
 *   DAT_PROTECTION_VIOLATION / DAT_PROTECTION_WRITE: a region of another protection zone
 *   DAT_PRIVILEGES_VIOLATION / DAT_PRIVILEGES_WRITE: no live region, or without local write
 *   DAT_INSUFFICIENT_RESOURCES: max_recv_dtos are outstanding, or the endpoint has no receive EVD
 * Thread safe. Does not block. Specification: transfers.md, dat_ep_post_recv.
 */
extern DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				   DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				   DAT_COMPLETION_FLAGS completion_flags);

/*
 * Read from the memory of the peer.
 *
 * ep_handle [in]           the endpoint
 * num_segments [in]        0 to max_rdma_read_iov of the endpoint
 * local_iov [in]           the target; the triplets are read before the call returns, the
 *                          memory is in use until the completion; may be NULL for 0 segments
 * user_cookie [in]         returned with the completion
 * remote_iov [in]          one triplet: the memory of the peer; read before the call returns
 * completion_flags [in]    DAT_COMPLETION_ flags except DAT_COMPLETION_EVD_THRESHOLD_FLAG;
 *                          DAT_COMPLETION_UNSIGNALLED_FLAG only if request_completion_flags of
 *                          the endpoint has it
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, num_segments: negative, or more than max_rdma_read_iov of the endpoint
 *   DAT_INVALID_PARAMETER, local_iov: NULL, or outside its region
 *   DAT_INVALID_PARAMETER, remote_iov: NULL, or more than max_rdma_size of the adapter
 *   DAT_INVALID_PARAMETER, completion_flags: a flag that is not allowed
 *   DAT_PROTECTION_VIOLATION / DAT_PROTECTION_WRITE: a region of another protection zone
 *   DAT_PRIVILEGES_VIOLATION / DAT_PRIVILEGES_WRITE: no live region, or without local write
 *   DAT_INVALID_STATE: the endpoint is neither connected nor disconnected; the subtype is its state
 *   DAT_INSUFFICIENT_RESOURCES:
 *     max_request_dtos are outstanding, binds included, or the endpoint has no request EVD
 *   DAT_LENGTH_ERROR: the local buffer is smaller than the remote one
 *   DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_CREDITS: the connection does not allow RDMA Reads
 * Thread safe. Does not block. Specification: transfers.md, dat_ep_post_rdma_read.
 */
extern DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
					const DAT_RMR_TRIPLET *remote_iov,
					DAT_COMPLETION_FLAGS completion_flags);

/*
 * Write to the memory of the peer.
 *
 * ep_handle [in]           the endpoint
 * num_segments [in]        0 to max_rdma_write_iov of the endpoint
 * local_iov [in]           the data; the triplets are read before the call returns, the
 *                          memory is in use until the completion; may be NULL for 0 segments
 * user_cookie [in]         returned with the completion
 * remote_iov [in]          one triplet: the memory of the peer; read before the call returns
 * completion_flags [in]    DAT_COMPLETION_ flags except DAT_COMPLETION_EVD_THRESHOLD_FLAG;
 *                          DAT_COMPLETION_UNSIGNALLED_FLAG only if request_completion_flags of
 *                          the endpoint has it
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, num_segments: negative, or more than max_rdma_write_iov of the endpoint
 *   DAT_INVALID_PARAMETER, local_iov:
 *     NULL, more than max_rdma_size of the adapter, or outside its region
 *   DAT_INVALID_PARAMETER, remote_iov: NULL
 *   DAT_INVALID_PARAMETER, completion_flags: a flag that is not allowed
 *   DAT_PROTECTION_VIOLATION / DAT_PROTECTION_READ: a region of another protection zone
 *   DAT_PRIVILEGES_VIOLATION / DAT_PRIVILEGES_READ: no live region, or without local read
 *   DAT_INVALID_STATE: the endpoint is neither connected nor disconnected; the subtype is its state
 *   DAT_INSUFFICIENT_RESOURCES:
 *     max_request_dtos are outstanding, binds included, or the endpoint has no request EVD
 *   DAT_LENGTH_ERROR: the remote buffer is smaller than the data; nothing is written
 * Thread safe. Does not block. Specification: transfers.md, dat_ep_post_rdma_write.
 */
extern DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					 DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
					 const DAT_RMR_TRIPLET *remote_iov,
					 DAT_COMPLETION_FLAGS completion_flags);

/*
 * Return the state of an endpoint and whether its queues are idle.
 *
 * ep_handle [in]       the endpoint
 * ep_state [out]       its state
 * recv_idle [out]      no receive is outstanding
 * request_idle [out]   no request is outstanding; each output may be NULL
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 * Thread safe. Does not block. Specification: endpoints.md, dat_ep_get_status.
 */
extern DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
				    DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle);

/*
 * Destroy an endpoint. Its connection ends as with an abrupt disconnect. Outstanding requests and
 * receives may end without a completion. Queued events remain.
 *
 * ep_handle [in]    the endpoint; invalid after success
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_STATE:
 *     reserved, or the consumer must answer a request for it; the subtype is the state
 * Thread safe. Does not wait for the peer, except for a copy in progress, for at most the peer
 * time-out (5 s by default). Specification: endpoints.md, dat_ep_free.
 */
extern DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle);

/*
 * Make a disconnected endpoint unconnected, so that it can be connected again.
 *
 * ep_handle [in]    the endpoint
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_STATE: neither disconnected nor unconnected; the subtype is the state
 * Thread safe. Does not block. Specification: endpoints.md, dat_ep_reset.
 */
extern DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle);

/*
 * Create an endpoint that takes its receives from a shared receive queue.
 *
 * ia_handle [in]             the instance
 * pz_handle [in]             the protection zone of its requests and of RDMA from the peer;
 *                            receives are in that of the queue; DAT_HANDLE_NULL if
 *                            dat_ep_modify sets it before it is used
 * recv_evd_handle [in]       EVD for completed receives, or DAT_HANDLE_NULL
 * request_evd_handle [in]    EVD for completed sends, RDMA and binds, or DAT_HANDLE_NULL
 * connect_evd_handle [in]    EVD for connection events, or DAT_HANDLE_NULL
 * srq_handle [in]            the shared receive queue
 * ep_attributes [in]         copied; not NULL. It needs max_request_iov, from 1; max_request_dtos,
 *                            from 1 with a request EVD, 0 without one; and for RDMA Reads
 *                            max_rdma_read_out (own) and max_rdma_read_in (of the peer). All other
 *                            members may be 0: see DAT_EP_ATTR. max_recv_dtos is the hard high
 *                            watermark and srq_soft_hw the soft one, 0 or DAT_HW_DEFAULT for none;
 *                            max_recv_iov is ignored
 * ep_handle [out]            the endpoint, unconnected; valid until dat_ep_free
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_PZ: no protection zone of the instance
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_RECV:
 *     recv_evd_handle is no EVD of the instance, or one without DAT_EVD_DTO_FLAG
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_REQUEST:
 *     request_evd_handle is no EVD of the instance, or one without DAT_EVD_DTO_FLAG
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_CONN:
 *     connect_evd_handle is no EVD of the instance, or one without DAT_EVD_CONNECTION_FLAG
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_SRQ: no shared receive queue of the instance
 *   DAT_INVALID_PARAMETER, pz_handle:
 *     not the protection zone of the queue, where srq_ep_pz_difference_supported is DAT_FALSE
 *   DAT_INVALID_PARAMETER, ep_attributes:
 *     NULL, a value that is not allowed, or completion flags that conflict with another stream
 *     of the same EVD, as in dat_ep_create
 *   DAT_INVALID_PARAMETER, ep_handle: NULL
 *   DAT_MODEL_NOT_SUPPORTED:
 *     the provider lacks shared receive queues, the watermark or the quality of service
 *   DAT_INSUFFICIENT_RESOURCES:
 *     memory or device objects are exhausted, or a limit of the adapter is reached
 * Thread safe. Does not block. Specification: endpoints.md, dat_ep_create_with_srq.
 */
extern DAT_RETURN
dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
		       DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
		       DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
		       const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle);

/*
 * Return the number of receive buffers that an endpoint holds.
 *
 * ep_handle [in]          the endpoint
 * nbufs_allocated [out]   buffers held; DAT_VALUE_UNKNOWN if the provider does not know; may
 *                         be NULL
 * bufs_alloc_span [out]   messages from the oldest incomplete one to the newest; as above
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_MODEL_NOT_SUPPORTED: the provider knows neither number; not with OpenDAT's providers
 * Thread safe. Does not block. Specification: endpoints.md, dat_ep_recv_query.
 */
extern DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
				    DAT_COUNT *bufs_alloc_span);

/*
 * Set how many receive buffers an endpoint may hold, and arm both limits.
 *
 * It holds a buffer until the Receive completes. Without an SRQ it holds each one from
 * dat_ep_post_recv on; with an SRQ only those that it has taken for messages that are arriving.
 * dat_ep_recv_query returns that number.
 * More than the soft limit is reported by DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR with the reason
 * DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT, on the asynchronous EVD of the instance; dat_handle is the
 * endpoint. It is reported once for each call of this function, during the call if the limit is
 * exceeded already. The hard limit acts while the endpoint is connected.
 *
 * ep_handle [in]              an endpoint
 * soft_high_watermark [in]    buffers: one asynchronous event reports more than this;
 *                             DAT_WATERMARK_INFINITE for none
 * hard_high_watermark [in]    buffers: more than this break the connection; as above
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, soft_high_watermark, hard_high_watermark:
 *     negative, and not DAT_WATERMARK_INFINITE
 *   DAT_MODEL_NOT_SUPPORTED: a watermark that the provider lacks
 * Thread safe. Does not block. Specification: endpoints.md, dat_ep_set_watermark.
 */
extern DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
				       DAT_COUNT hard_high_watermark);

/* ---- calls: local memory regions ---- */

/*
 * Query the parameters of a memory region.
 *
 * lmr_handle [in]        the region
 * lmr_param_mask [in]    DAT_LMR_FIELD_ bits of the members to fill
 * lmr_param [out]        filled as selected by the mask
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_LMR: no live region
 *   DAT_INVALID_PARAMETER, lmr_param_mask: a bit that is not defined
 *   DAT_INVALID_PARAMETER, lmr_param: NULL
 * Thread safe. Does not block. Specification: memory.md, dat_lmr_query.
 */
extern DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
				DAT_LMR_PARAM *lmr_param);

/*
 * End a registration. After the call no peer and no transfer changes the memory through it.
 *
 * Other regions over the same memory stay, also those of type DAT_MEM_TYPE_LMR that were made from
 * this one. Requests and Receives that use the region do not prevent the call. One that is not
 * carried out yet ends with DAT_DTO_ERR_LOCAL_PROTECTION, a Receive when a message needs it, and
 * its connection breaks.
 *
 * lmr_handle [in]    the region; invalid after success
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_LMR: no live region
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_LMR_IN_USE: an RMR is bound to it
 * Thread safe. Waits for copies to and from the memory that are in progress; a peer that is stopped
 * during a copy delays the call by at most the peer time-out (5 s by default), then its
 * connection is broken. Specification: memory.md, dat_lmr_free.
 */
extern DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle);

/*
 * Make data written by this host visible to RDMA Reads of peers. It is required if lmr_sync_req of
 * the provider is true. Otherwise the call only checks its arguments.
 *
 * ia_handle [in]         the instance
 * local_segments [in]    the memory; read before the call returns
 * num_segments [in]      triplets; 0 does nothing
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_PARAMETER, local_segments: NULL, no live region, or not inside it
 * Thread safe. Does not block. Specification: memory.md, dat_lmr_sync_rdma_read.
 */
extern DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle,
					 const DAT_LMR_TRIPLET *local_segments,
					 DAT_VLEN num_segments);

/*
 * Make data written by RDMA of a peer visible to this host. It is required if lmr_sync_req of the
 * provider is true. Otherwise the call only checks its arguments.
 *
 * ia_handle [in]         the instance
 * local_segments [in]    the memory; read before the call returns
 * num_segments [in]      triplets; 0 does nothing
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_PARAMETER, local_segments: NULL, no live region, or not inside it
 * Thread safe. Does not block. Specification: memory.md, dat_lmr_sync_rdma_write.
 */
extern DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
					  const DAT_LMR_TRIPLET *local_segments,
					  DAT_VLEN num_segments);

/* ---- calls: remote memory regions ---- */

/*
 * Create a remote memory region: a window that dat_rmr_bind binds to memory.
 *
 * pz_handle [in]     its protection zone
 * rmr_handle [out]   the RMR, not bound; valid until dat_rmr_free
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_PZ: no live zone
 *   DAT_INVALID_PARAMETER, rmr_handle: NULL
 *   DAT_INSUFFICIENT_RESOURCES:
 *     memory or device objects are exhausted, or a limit of the adapter is reached
 * Thread safe. Does not block. Specification: memory.md, dat_rmr_create.
 */
extern DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle);

/*
 * Query the parameters of an RMR.
 *
 * rmr_handle [in]        the RMR
 * rmr_param_mask [in]    DAT_RMR_FIELD_ bits of the members to fill
 * rmr_param [out]        filled as selected by the mask
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_RMR: no live RMR
 *   DAT_INVALID_PARAMETER, rmr_param_mask:
 *     a bit that is not defined, or the triplet of an RMR that is not bound
 *   DAT_INVALID_PARAMETER, rmr_param: NULL
 * Thread safe. Does not block. Specification: memory.md, dat_rmr_query.
 */
extern DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
				DAT_RMR_PARAM *rmr_param);

/*
 * Post a bind of an RMR to a range of a memory region, which ends its previous bind.
 *
 * Requests that are posted to the same endpoint after it start when the bind has completed, so a
 * Send that tells the peer the new key may be posted at once. On another endpoint wait for the
 * completion before.
 *
 * rmr_handle [in]          the RMR
 * lmr_triplet [in]         the range; length 0 unbinds; read before the call returns
 * mem_priv [in]            permitted uses: DAT_MEM_PRIV_REMOTE_ flags; local flags are ignored
 * ep_handle [in]           the endpoint of the permitted peer and of the completion
 * user_cookie [in]         returned with the completion
 * completion_flags [in]    DAT_COMPLETION_SUPPRESS_FLAG, DAT_COMPLETION_BARRIER_FENCE_FLAG, and
 *                          DAT_COMPLETION_UNSIGNALLED_FLAG if request_completion_flags of the
 *                          endpoint has it
 * context [out]            the key for peers, valid after the bind has completed; may be NULL for
 *                          an unbind
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_RMR: no live RMR
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no live endpoint
 *   DAT_INVALID_PARAMETER, lmr_triplet: NULL, no live region, or not inside it
 *   DAT_INVALID_PARAMETER, mem_priv: a bit that is not defined
 *   DAT_INVALID_PARAMETER, completion_flags: a flag that is not allowed
 *   DAT_INVALID_PARAMETER, context: NULL, and the length is not 0
 *   DAT_PROTECTION_VIOLATION: region, RMR and endpoint are not in one protection zone
 *   DAT_PRIVILEGES_VIOLATION / DAT_PRIVILEGES_READ:
 *     remote read, but the region permits neither local read nor local write
 *   DAT_PRIVILEGES_VIOLATION / DAT_PRIVILEGES_WRITE:
 *     remote write, but the region does not permit local write
 *   DAT_INVALID_STATE:
 *     the endpoint is neither connected nor disconnected; the subtype is its state
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_EP_EVD_REQUEST:
 *     its request EVD lacks DAT_EVD_RMR_BIND_FLAG
 *   DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_TEP:
 *     max_request_dtos are outstanding, binds included, or the endpoint has no request EVD
 *   DAT_INSUFFICIENT_RESOURCES: memory or device objects are exhausted
 * Thread safe. Does not block. Specification: memory.md, dat_rmr_bind.
 */
extern DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *lmr_triplet,
			       DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle,
			       DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
			       DAT_RMR_CONTEXT *context);

/*
 * Destroy an RMR, bound or not.
 *
 * rmr_handle [in]    the RMR; invalid after success
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_RMR: no live RMR
 * Thread safe. Waits for a copy of a peer through the window that is in progress; a peer that is
 * stopped during a copy delays the call by at most the peer time-out (5 s by default), then
 * its connection is broken. Specification: memory.md, dat_rmr_free.
 */
extern DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle);

/* ---- calls: public service points ---- */

/*
 * Listen for connection requests.
 *
 * ia_handle [in]     the instance
 * conn_qual [in]     the qualifier to listen on, not 0
 * evd_handle [in]    an EVD with DAT_EVD_CR_FLAG for the requests; a request is
 *                    refused if it is full
 * psp_flags [in]     the provider of endpoints: DAT_PSP_CONSUMER_FLAG or DAT_PSP_PROVIDER_FLAG
 * psp_handle [out]   the PSP, listening; valid until dat_psp_free
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_CR:
 *     no EVD of the instance, or one without DAT_EVD_CR_FLAG
 *   DAT_INVALID_PARAMETER, conn_qual: 0
 *   DAT_INVALID_PARAMETER, evd_handle:
 *     an EVD that takes receives of an endpoint with DAT_COMPLETION_SOLICITED_WAIT_FLAG
 *   DAT_INVALID_PARAMETER, psp_flags: a flag that is not defined
 *   DAT_INVALID_PARAMETER, psp_handle: NULL
 *   DAT_CONN_QUAL_IN_USE: another service point listens there
 *   DAT_MODEL_NOT_SUPPORTED: a flag that the provider lacks
 *   DAT_INSUFFICIENT_RESOURCES:
 *     memory or device objects are exhausted, or a limit of the adapter is reached
 * Thread safe. Does not block. Specification: connections.md, dat_psp_create.
 */
extern DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
				 DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
				 DAT_PSP_HANDLE *psp_handle);

/*
 * Listen for connection requests on a qualifier that the provider chooses.
 *
 * ia_handle [in]     the instance
 * conn_qual [out]    the qualifier, below 65536 while others leave any of these
 * evd_handle [in]    an EVD with DAT_EVD_CR_FLAG for the requests; a request is
 *                    refused if it is full
 * psp_flags [in]     the provider of endpoints: DAT_PSP_CONSUMER_FLAG or DAT_PSP_PROVIDER_FLAG
 * psp_handle [out]   the PSP, listening; valid until dat_psp_free
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_CR:
 *     no EVD of the instance, or one without DAT_EVD_CR_FLAG
 *   DAT_INVALID_PARAMETER, conn_qual: NULL
 *   DAT_INVALID_PARAMETER, evd_handle:
 *     an EVD that takes receives of an endpoint with DAT_COMPLETION_SOLICITED_WAIT_FLAG
 *   DAT_INVALID_PARAMETER, psp_flags: a flag that is not defined
 *   DAT_INVALID_PARAMETER, psp_handle: NULL
 *   DAT_CONN_QUAL_UNAVAILABLE: all qualifiers that could be tried are in use
 *   DAT_MODEL_NOT_SUPPORTED: a flag that the provider lacks
 *   DAT_INSUFFICIENT_RESOURCES:
 *     memory or device objects are exhausted, or a limit of the adapter is reached
 * Thread safe. Does not block. Specification: connections.md, dat_psp_create_any.
 */
extern DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
				     DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
				     DAT_PSP_HANDLE *psp_handle);

/*
 * Query the parameters of a PSP.
 *
 * psp_handle [in]        the PSP
 * psp_param_mask [in]    DAT_PSP_FIELD_ bits of the members to fill
 * psp_param [out]        filled as selected by the mask
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_PSP: no live PSP
 *   DAT_INVALID_PARAMETER, psp_param_mask: a bit that is not defined
 *   DAT_INVALID_PARAMETER, psp_param: NULL
 * Thread safe. Does not block. Specification: connections.md, dat_psp_query.
 */
extern DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
				DAT_PSP_PARAM *psp_param);

/*
 * Stop listening. Requests that have arrived can still be answered.
 *
 * psp_handle [in]    the PSP; invalid after success
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_PSP: no live PSP
 * Thread safe. Does not block. Specification: connections.md, dat_psp_free.
 */
extern DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle);

/* ---- calls: reserved service points ---- */

/*
 * Listen for one connection request, for one endpoint.
 *
 * ia_handle [in]     the instance
 * conn_qual [in]     the qualifier to listen on, not 0
 * ep_handle [in]     an unconnected endpoint, reserved until the request is answered or the
 *                    RSP is freed; DAT_HANDLE_NULL: the provider creates one for the request
 * evd_handle [in]    an EVD with DAT_EVD_CR_FLAG for the request
 * rsp_handle [out]   the RSP; valid until dat_rsp_free
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EP: no endpoint of the instance
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_EVD_CR:
 *     no EVD of the instance, or one without DAT_EVD_CR_FLAG
 *   DAT_INVALID_PARAMETER, conn_qual: 0
 *   DAT_INVALID_PARAMETER, evd_handle:
 *     an EVD that takes receives of an endpoint with DAT_COMPLETION_SOLICITED_WAIT_FLAG
 *   DAT_INVALID_PARAMETER, rsp_handle: NULL
 *   DAT_CONN_QUAL_IN_USE: another service point listens there
 *   DAT_INVALID_STATE: the endpoint is not unconnected; the subtype is its state
 *   DAT_INSUFFICIENT_RESOURCES:
 *     memory or device objects are exhausted, or a limit of the adapter is reached
 * Thread safe. Does not block. Specification: connections.md, dat_rsp_create.
 */
extern DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
				 DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
				 DAT_RSP_HANDLE *rsp_handle);

/*
 * Query the parameters of an RSP.
 *
 * rsp_handle [in]        the RSP
 * rsp_param_mask [in]    DAT_RSP_FIELD_ bits of the members to fill
 * rsp_param [out]        filled as selected by the mask
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_RSP: no live RSP
 *   DAT_INVALID_PARAMETER, rsp_param_mask: a bit that is not defined
 *   DAT_INVALID_PARAMETER, rsp_param: NULL
 * Thread safe. Does not block. Specification: connections.md, dat_rsp_query.
 */
extern DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
				DAT_RSP_PARAM *rsp_param);

/*
 * Destroy an RSP. An endpoint that still waits for a request becomes unconnected.
 *
 * rsp_handle [in]    the RSP; invalid after success
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_RSP: no live RSP
 * Thread safe. Does not block. Specification: connections.md, dat_rsp_free.
 */
extern DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle);

/* ---- calls: protection zones ---- */

/*
 * Create a protection zone. Endpoints can use only the memory of their own zone.
 *
 * ia_handle [in]    the instance
 * pz_handle [out]   the zone, valid until dat_pz_free
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_PARAMETER, pz_handle: NULL
 *   DAT_INSUFFICIENT_RESOURCES:
 *     memory or device objects are exhausted, or a limit of the adapter is reached
 * Thread safe. Does not block. Specification: memory.md, dat_pz_create.
 */
extern DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle);

/*
 * Query the parameters of a protection zone.
 *
 * pz_handle [in]        the zone
 * pz_param_mask [in]    DAT_PZ_FIELD_ bits of the members to fill
 * pz_param [out]        filled as selected by the mask
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_PZ: no live zone
 *   DAT_INVALID_PARAMETER, pz_param_mask: a bit that is not defined
 *   DAT_INVALID_PARAMETER, pz_param: NULL
 * Thread safe. Does not block. Specification: memory.md, dat_pz_query.
 */
extern DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
			       DAT_PZ_PARAM *pz_param);

/*
 * Destroy a protection zone.
 *
 * pz_handle [in]    the zone; invalid after success
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_PZ: no live zone
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_PZ_IN_USE: it contains an endpoint, LMR, RMR or SRQ
 * Thread safe. Does not block. Specification: memory.md, dat_pz_free.
 */
extern DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle);

/* ---- calls: shared receive queues ---- */

/*
 * Create a shared receive queue, which provides buffers to several endpoints.
 *
 * ia_handle [in]     the instance
 * pz_handle [in]     the protection zone of its buffers
 * srq_attr [in]      buffers from 1 to max_recv_per_srq, segments in each from 1 to
 *                    max_iov_segments_per_dto; low_watermark is DAT_SRQ_LW_DEFAULT; copied
 * srq_handle [out]   the SRQ, valid until dat_srq_free
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_IA: no open adapter
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_PZ: no live zone
 *   DAT_INVALID_PARAMETER, srq_attr:
 *     NULL, max_recv_dtos or max_recv_iov out of range, or low_watermark not DAT_SRQ_LW_DEFAULT
 *   DAT_INVALID_PARAMETER, srq_handle: NULL
 *   DAT_MODEL_NOT_SUPPORTED: the provider has no SRQs
 *   DAT_INSUFFICIENT_RESOURCES:
 *     memory or device objects are exhausted, or a limit of the adapter is reached
 * Thread safe. Does not block. Specification: srq.md, dat_srq_create.
 */
extern DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				 DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle);

/*
 * Destroy a shared receive queue and discard its buffers.
 *
 * srq_handle [in]    the SRQ; invalid after success
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_SRQ: no live SRQ
 *   DAT_INVALID_STATE / DAT_INVALID_STATE_SRQ_IN_USE: an endpoint uses it
 * Thread safe. Does not block. Specification: srq.md, dat_srq_free.
 */
extern DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle);

/*
 * Post a buffer for a message to any endpoint of the queue.
 *
 * srq_handle [in]      the SRQ
 * num_segments [in]    0 to max_recv_iov of the SRQ
 * local_iov [in]       the buffer; the triplets are read before the call returns, the memory
 *                      is in use until the completion; may be NULL for 0 segments
 * user_cookie [in]     returned with the completion
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_SRQ: no live SRQ
 *   DAT_INVALID_PARAMETER, num_segments: negative, or more than max_recv_iov of the SRQ
 *   DAT_INVALID_PARAMETER, local_iov: NULL or outside its region
 *   DAT_PROTECTION_VIOLATION / DAT_PROTECTION_WRITE:
 *     the region is not in the protection zone of the SRQ
 *   DAT_PRIVILEGES_VIOLATION / DAT_PRIVILEGES_WRITE: no live region, or without local write
 *   DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_SRQ: max_recv_dtos buffers are outstanding
 * Thread safe. Does not block. Specification: srq.md, dat_srq_post_recv.
 */
extern DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
				    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie);

/*
 * Query the parameters of a shared receive queue.
 *
 * srq_handle [in]        the SRQ
 * srq_param_mask [in]    DAT_SRQ_FIELD_ bits of the members to fill
 * srq_param [out]        filled as selected by the mask
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_SRQ: no live SRQ
 *   DAT_INVALID_PARAMETER, srq_param_mask: a bit that is not defined
 *   DAT_INVALID_PARAMETER, srq_param: NULL
 * Thread safe. Does not block. Specification: srq.md, dat_srq_query.
 */
extern DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
				DAT_SRQ_PARAM *srq_param);

/*
 * Change the number of buffers that a shared receive queue can hold.
 *
 * srq_handle [in]          the SRQ
 * srq_max_recv_dto [in]    buffers, from 1 to max_recv_per_srq
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_SRQ: no live SRQ
 *   DAT_INVALID_PARAMETER, srq_max_recv_dto: not positive, or more than max_recv_per_srq
 *   DAT_INVALID_STATE: fewer than the outstanding buffers or the low watermark; nothing is changed
 *   DAT_INSUFFICIENT_RESOURCES: memory is exhausted; nothing is changed
 * Thread safe. Does not block. Specification: srq.md, dat_srq_resize.
 */
extern DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto);

/*
 * Request one asynchronous event when fewer buffers than this are left.
 *
 * The event is DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR with the reason DAT_SRQ_LOW_WATERMARK_EVENT,
 * on the asynchronous EVD of the instance; dat_handle is the SRQ. It comes once for each call of
 * this function, during the call if fewer buffers are left already. Posting buffers does not
 * request it again. Left are the buffers that no endpoint has taken for a message, which
 * dat_srq_query returns as available_dto_count.
 *
 * srq_handle [in]       the SRQ
 * low_watermark [in]    buffers, from 0 (never) to max_recv_dtos
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_SRQ: no live SRQ
 *   DAT_INVALID_PARAMETER, low_watermark: negative, or more than max_recv_dtos
 *   DAT_MODEL_NOT_SUPPORTED: the provider lacks this watermark
 * Thread safe. Does not block. Specification: srq.md, dat_srq_set_lw.
 */
extern DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark);

/* ---- calls: registry ---- */

/*
 * List the adapters of this API version. They are those in dat.conf, or the built-in ones if it
 * lists none. No library is loaded.
 *
 * The list consists of pointers to blocks, not of blocks. The call follows as many of them as there
 * are adapters, but no more than max_to_return: pass 1 with the address of a single pointer.
 *
 * max_to_return [in]        the number of blocks in the list, from 1
 * entries_returned [out]    the number of adapters, even if the list is too short
 * dat_provider_list [out]   array of pointers to the caller's blocks, which are filled from
 *                           the first
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_PARAMETER, max_to_return: the list is too short, and was filled
 *   DAT_INVALID_PARAMETER, entries_returned: NULL
 *   DAT_INVALID_PARAMETER, dat_provider_list: NULL, or NULL in the array
 *   DAT_INSUFFICIENT_RESOURCES: memory is exhausted
 *   DAT_INTERNAL_ERROR: the file that DAT_OVERRIDE names cannot be read
 * Thread safe. The first call reads the registry file. Specification: registry.md,
 * dat_registry_list_providers.
 */
extern DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT *entries_returned,
					      DAT_PROVIDER_INFO **dat_provider_list);

/* ---- calls: return codes ---- */

/*
 * Return the names of the type and the subtype of a return code.
 *
 * return_value [in]     the code; its class is ignored
 * major_message [out]   the name of the type's enumerator, as constant text
 * minor_message [out]   that of the subtype, empty if there is none; may be NULL
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_PARAMETER, return_value:
 *     the type or subtype is not defined, but the messages are set
 *   DAT_INVALID_PARAMETER, major_message: NULL
 * Thread safe. Does not block. Specification: registry.md, dat_strerror.
 */
extern DAT_RETURN dat_strerror(DAT_RETURN return_value, const char **major_message,
			       const char **minor_message);

#ifdef __cplusplus
}
#endif

#ifdef DAT_CXX_FLAGS
DAT_CXX_FLAGS(DAT_COMPLETION_FLAGS, 0x1fu);
DAT_CXX_FLAGS(DAT_CONNECT_FLAGS, 0x01u);
DAT_CXX_FLAGS(DAT_EVD_FLAGS, 0x1f1u);
DAT_CXX_FLAGS(DAT_MEM_PRIV_FLAGS, 0x133u);
DAT_CXX_FLAGS(DAT_LMR_PARAM_MASK, 0x3ffu);
DAT_CXX_FLAGS(DAT_RMR_PARAM_MASK, 0x1fu);
DAT_CXX_FLAGS(DAT_SRQ_PARAM_MASK, 0xffu);
DAT_CXX_FLAGS(DAT_PSP_PARAM_MASK, 0x0fu);
DAT_CXX_FLAGS(DAT_RSP_PARAM_MASK, 0x0fu);
DAT_CXX_FLAGS(DAT_CR_PARAM_MASK, 0x1fu);
#endif

#endif /* _DAT_H_ */
