/* SPDX-License-Identifier: BSD-2-Clause */
/* Return codes. */
#ifndef _DAT_ERROR_H_
#define _DAT_ERROR_H_

#include <dat/dat_platform_specific.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A return code: the result of a call.
 *
 * A code is the sum of a class (bits 31 and 30), a type (bits 29 to 16) and a subtype (bits 15 to
 * 0). Success is DAT_SUCCESS, which is 0. Every failure has DAT_CLASS_ERROR set, except
 * DAT_QUEUE_EMPTY, which has no class bit. So compare the whole code with DAT_SUCCESS and
 * DAT_QUEUE_EMPTY, and DAT_GET_TYPE of the code with the other types.
 *
 * Only the type is the same with every provider. The subtype describes the cause. dat_strerror
 * converts both to text. No call of OpenDAT returns a warning.
 *
 * Specification: registry.md, General conventions (all functions).
 */
typedef DAT_UINT32 DAT_RETURN; /* a 32-bit integer */

#define DAT_CLASS_ERROR 0x80000000   /* the class of failures */
#define DAT_CLASS_WARNING 0x40000000 /* the class of warnings */
#define DAT_CLASS_SUCCESS 0x00000000 /* the class of success */

#define DAT_TYPE_MASK 0x3fff0000    /* the bits of the type */
#define DAT_SUBTYPE_MASK 0x0000ffff /* the bits of the subtype */

/* non-zero if the call succeeded with a warning */
#define DAT_IS_WARNING(status) ((DAT_UINT32)(status) & (DAT_UINT32)DAT_CLASS_WARNING)
/* the type, a DAT_RETURN_TYPE */
#define DAT_GET_TYPE(status) ((DAT_UINT32)(status) & (DAT_UINT32)DAT_TYPE_MASK)
/* the subtype, a DAT_RETURN_SUBTYPE */
#define DAT_GET_SUBTYPE(status) ((DAT_UINT32)(status) & (DAT_UINT32)DAT_SUBTYPE_MASK)

/*
 * Types of return codes, extracted by DAT_GET_TYPE. The page of each call lists those that it
 * returns and when. Any call may return DAT_INTERNAL_ERROR.
 *
 * Specification: registry.md, General conventions (all functions).
 */
__extension__ typedef enum dat_return_type {
	DAT_SUCCESS = 0, /* the call has succeeded; the whole code is 0 */
	/* the EVD or its instance was destroyed during dat_evd_wait */
	DAT_ABORT = 0x00010000,
	/* another service point listens on the qualifier, in this process or another */
	DAT_CONN_QUAL_IN_USE = 0x00020000,
	/* memory, descriptors or device objects are exhausted, a limit of the adapter is reached,
	 * or a queue is full; the subtype says which. A post succeeds again when completions were
	 * dequeued */
	DAT_INSUFFICIENT_RESOURCES = 0x00030000,
	/* the provider has detected an error of its own; never for a mistake of the program */
	DAT_INTERNAL_ERROR = 0x00040000,
	/* a handle is DAT_HANDLE_NULL, belongs to an object of another type or of another instance,
	 * or its object was freed; the subtype says which handle */
	DAT_INVALID_HANDLE = 0x00050000,
	/* an argument is wrong; the subtype is its number, DAT_INVALID_ARG1 for the first */
	DAT_INVALID_PARAMETER = 0x00060000,
	/* the object is in a state that does not allow the call, or is in use; the subtype says
	 * which */
	DAT_INVALID_STATE = 0x00070000,
	/* an RDMA Read into a smaller local buffer, or an RDMA Write of more than the remote
	 * triplet */
	DAT_LENGTH_ERROR = 0x00080000,
	/* the provider lacks what was asked for: an optional feature, a flag, a quality of service
	 */
	DAT_MODEL_NOT_SUPPORTED = 0x00090000,
	/* no adapter of that name, version and thread safety; the subtype says which */
	DAT_PROVIDER_NOT_FOUND = 0x000A0000,
	/* a region does not permit this use, or no live region has that key */
	DAT_PRIVILEGES_VIOLATION = 0x000B0000,
	/* a region belongs to another protection zone than the endpoint or queue */
	DAT_PROTECTION_VIOLATION = 0x000C0000,
	/* there is no event, or no notification in time. Returned without a class bit, so that the
	 * whole code is this value */
	DAT_QUEUE_EMPTY = 0x000D0000,
	/* the EVD has no room for a software event */
	DAT_QUEUE_FULL = 0x000E0000,
	/* too few events arrived within the time-out of dat_evd_wait */
	DAT_TIMEOUT_EXPIRED = 0x000F0000,
	/* the registry has an entry with the same name, version and thread safety */
	DAT_PROVIDER_ALREADY_REGISTERED = 0x00100000,
	/* an instance of the adapter is open */
	DAT_PROVIDER_IN_USE = 0x00110000,
	/* an address is of an unsupported kind, or has no route */
	DAT_INVALID_ADDRESS = 0x00120000,
	/* a signal was handled during a wait */
	DAT_INTERRUPTED_CALL = 0x00130000,
	/* all qualifiers that dat_psp_create_any can choose are in use */
	DAT_CONN_QUAL_UNAVAILABLE = 0x00140000,
	/* the call is not implemented; no call of OpenDAT returns it. Compare the whole code, since
	 * the value includes class bits */
	DAT_NOT_IMPLEMENTED = 0xFFFF0000,
} DAT_RETURN_TYPE;

/* Names of earlier versions. */
#define DAT_NAME_NOT_FOUND DAT_PROVIDER_NOT_FOUND

/*
 * Subtypes of return codes, extracted by DAT_GET_SUBTYPE: the cause. Other providers may return
 * others than OpenDAT, or none, so programs use them for messages only.
 *
 * The numbers in DAT_INVALID_ARG1 and DAT_INVALID_HANDLE1 and those after them count the arguments
 * of the call from 1. "Not used" means that no call of OpenDAT returns the subtype.
 *
 * Specification: registry.md, General conventions (all functions).
 */
typedef enum dat_return_subtype {
	DAT_NO_SUBTYPE = 0,	 /* nothing is known beyond the type */
	DAT_SUB_INTERRUPTED = 1, /* a signal was handled; not used */
	DAT_RESOURCE_MEMORY = 2, /* memory */
	DAT_RESOURCE_DEVICE = 3, /* the device, or file descriptors */
	/* the queue of the endpoint is full, or has no EVD */
	DAT_RESOURCE_TEP = 4,
	DAT_RESOURCE_TEVD = 5,		    /* the length of an EVD */
	DAT_RESOURCE_PROTECTION_DOMAIN = 6, /* protection zones */
	DAT_RESOURCE_MEMORY_REGION = 7,	    /* memory regions or RMRs */
	DAT_RESOURCE_ERROR_HANDLER = 8,	    /* not used */
	DAT_RESOURCE_CREDITS = 9,	    /* the connection allows no RDMA Reads */
	/* buffers of a shared receive queue, or such queues */
	DAT_RESOURCE_SRQ = 10,
	DAT_INVALID_HANDLE_IA = 11,	     /* the instance */
	DAT_INVALID_HANDLE_EP = 12,	     /* the endpoint */
	DAT_INVALID_HANDLE_LMR = 13,	     /* the memory region */
	DAT_INVALID_HANDLE_RMR = 14,	     /* the RMR */
	DAT_INVALID_HANDLE_PZ = 15,	     /* the protection zone */
	DAT_INVALID_HANDLE_PSP = 16,	     /* the public service point */
	DAT_INVALID_HANDLE_RSP = 17,	     /* the reserved service point */
	DAT_INVALID_HANDLE_CR = 18,	     /* the connection request */
	DAT_INVALID_HANDLE_CNO = 19,	     /* the CNO */
	DAT_INVALID_HANDLE_EVD_CR = 20,	     /* the EVD for connection requests */
	DAT_INVALID_HANDLE_EVD_REQUEST = 21, /* the EVD for requests */
	DAT_INVALID_HANDLE_EVD_RECV = 22,    /* the EVD for receives */
	DAT_INVALID_HANDLE_EVD_CONN = 23,    /* the EVD for connection events */
	DAT_INVALID_HANDLE_EVD_ASYNC = 24,   /* the EVD for asynchronous events */
	DAT_INVALID_HANDLE_SRQ = 25,	     /* the shared receive queue */
	DAT_INVALID_HANDLE1 = 26,	     /* the first argument */
	DAT_INVALID_HANDLE2 = 27,	     /* the second argument; not used */
	DAT_INVALID_HANDLE3 = 28,	     /* the third argument; not used */
	DAT_INVALID_HANDLE4 = 29,	     /* the fourth argument; not used */
	DAT_INVALID_HANDLE5 = 30,	     /* the fifth argument; not used */
	DAT_INVALID_HANDLE6 = 31,	     /* the sixth argument; not used */
	DAT_INVALID_HANDLE7 = 32,	     /* the seventh argument; not used */
	DAT_INVALID_HANDLE8 = 33,	     /* the eighth argument; not used */
	DAT_INVALID_HANDLE9 = 34,	     /* the ninth argument; not used */
	DAT_INVALID_HANDLE10 = 35,	     /* the tenth argument; not used */
	DAT_INVALID_ARG1 = 36,		     /* the first argument */
	DAT_INVALID_ARG2 = 37,		     /* the second argument */
	DAT_INVALID_ARG3 = 38,		     /* the third argument */
	DAT_INVALID_ARG4 = 39,		     /* the fourth argument */
	DAT_INVALID_ARG5 = 40,		     /* the fifth argument */
	DAT_INVALID_ARG6 = 41,		     /* the sixth argument */
	DAT_INVALID_ARG7 = 42,		     /* the seventh argument */
	DAT_INVALID_ARG8 = 43,		     /* the eighth argument */
	DAT_INVALID_ARG9 = 44,		     /* the ninth argument; not used */
	DAT_INVALID_ARG10 = 45,		     /* the tenth argument; not used */
	/* the endpoint is in DAT_EP_STATE_UNCONNECTED */
	DAT_INVALID_STATE_EP_UNCONNECTED = 46,
	/* the endpoint is in DAT_EP_STATE_ACTIVE_CONNECTION_PENDING */
	DAT_INVALID_STATE_EP_ACTCONNPENDING = 47,
	/* the endpoint is in DAT_EP_STATE_PASSIVE_CONNECTION_PENDING */
	DAT_INVALID_STATE_EP_PASSCONNPENDING = 48,
	/* the endpoint is in DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING */
	DAT_INVALID_STATE_EP_TENTCONNPENDING = 49,
	/* the endpoint is in DAT_EP_STATE_CONNECTED */
	DAT_INVALID_STATE_EP_CONNECTED = 50,
	/* the endpoint is in DAT_EP_STATE_DISCONNECTED */
	DAT_INVALID_STATE_EP_DISCONNECTED = 51,
	/* the endpoint is in DAT_EP_STATE_RESERVED */
	DAT_INVALID_STATE_EP_RESERVED = 52,
	/* the endpoint is in DAT_EP_STATE_COMPLETION_PENDING */
	DAT_INVALID_STATE_EP_COMPLPENDING = 53,
	/* the endpoint is in DAT_EP_STATE_DISCONNECT_PENDING */
	DAT_INVALID_STATE_EP_DISCPENDING = 54,
	DAT_INVALID_STATE_EP_PROVIDERCONTROL = 55, /* not used */
	/* the endpoint has no protection zone */
	DAT_INVALID_STATE_EP_NOTREADY = 56,
	DAT_INVALID_STATE_EP_RECV_WATERMARK = 57, /* not used */
	DAT_INVALID_STATE_EP_PZ = 58,		  /* not used */
	/* the request EVD lacks DAT_EVD_RMR_BIND_FLAG */
	DAT_INVALID_STATE_EP_EVD_REQUEST = 59,
	/* receives are posted, so recv_completion_flags cannot change */
	DAT_INVALID_STATE_EP_EVD_RECV = 60,
	DAT_INVALID_STATE_EP_EVD_CONNECT = 61,	   /* not used */
	DAT_INVALID_STATE_EP_UNCONFIGURED = 62,	   /* not used */
	DAT_INVALID_STATE_EP_UNCONFRESERVED = 63,  /* not used */
	DAT_INVALID_STATE_EP_UNCONFPASSIVE = 64,   /* not used */
	DAT_INVALID_STATE_EP_UNCONFTENTATIVE = 65, /* not used */
	/* an EVD refers to the CNO, or a thread waits on it */
	DAT_INVALID_STATE_CNO_IN_USE = 66,
	DAT_INVALID_STATE_CNO_DEAD = 67,     /* not used */
	DAT_INVALID_STATE_EVD_OPEN = 68,     /* not used */
	DAT_INVALID_STATE_EVD_ENABLED = 69,  /* not used */
	DAT_INVALID_STATE_EVD_DISABLED = 70, /* not used */
	DAT_INVALID_STATE_EVD_WAITABLE = 71, /* not used */
	/* the EVD is or becomes unwaitable */
	DAT_INVALID_STATE_EVD_UNWAITABLE = 72,
	/* an object or an open instance uses the EVD */
	DAT_INVALID_STATE_EVD_IN_USE = 73,
	DAT_INVALID_STATE_EVD_CONFIG_NOTIFY = 74,    /* not used */
	DAT_INVALID_STATE_EVD_CONFIG_SOLICITED = 75, /* not used */
	/* completions of the EVD may not notify, so the threshold must be 1 */
	DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD = 76,
	DAT_INVALID_STATE_EVD_WAITER = 77, /* a thread waits on the EVD */
	DAT_INVALID_STATE_EVD_ASYNC = 78,  /* not used */
	DAT_INVALID_STATE_IA_IN_USE = 79,  /* objects of the instance exist */
	DAT_INVALID_STATE_LMR_IN_USE = 80, /* an RMR is bound to the region */
	DAT_INVALID_STATE_LMR_FREE = 81,   /* not used */
	/* the protection zone contains an object */
	DAT_INVALID_STATE_PZ_IN_USE = 82,
	DAT_INVALID_STATE_PZ_FREE = 83,		/* not used */
	DAT_INVALID_STATE_SRQ_OPERATIONAL = 84, /* not used */
	DAT_INVALID_STATE_SRQ_ERROR = 85,	/* not used */
	/* an endpoint uses the shared receive queue */
	DAT_INVALID_STATE_SRQ_IN_USE = 86,
	DAT_PRIVILEGES_READ = 87,  /* the region lacks local read */
	DAT_PRIVILEGES_WRITE = 88, /* the region lacks local write */
	/* remote read; not used, see DAT_DTO_ERR_REMOTE_ACCESS */
	DAT_PRIVILEGES_RDMA_READ = 89,
	/* remote write; not used, see DAT_DTO_ERR_REMOTE_ACCESS */
	DAT_PRIVILEGES_RDMA_WRITE = 90,
	DAT_PROTECTION_READ = 91,  /* the zone of a region that is read */
	DAT_PROTECTION_WRITE = 92, /* the zone of a region that is written */
	/* the zone at the peer; not used, see DAT_DTO_ERR_REMOTE_ACCESS */
	DAT_PROTECTION_RDMA_READ = 93,
	/* the zone at the peer; not used, see DAT_DTO_ERR_REMOTE_ACCESS */
	DAT_PROTECTION_RDMA_WRITE = 94,
	/* the kind of address is not supported */
	DAT_INVALID_ADDRESS_UNSUPPORTED = 95,
	DAT_INVALID_ADDRESS_UNREACHABLE = 96, /* no route leads to the address */
	DAT_INVALID_ADDRESS_MALFORMED = 97,   /* not used */
	/* no adapter has that name, or its libraries cannot be loaded */
	DAT_NAME_NOT_REGISTERED = 98,
	/* no adapter of that name has that major version */
	DAT_MAJOR_NOT_FOUND = 99,
	/* no matching adapter has that minor version or a later one */
	DAT_MINOR_NOT_FOUND = 100,
	/* no matching adapter has that thread safety */
	DAT_THREAD_SAFETY_NOT_FOUND = 101,
	/* of Solaris: the name lacks the prefix RO_AWARE_; not used */
	DAT_INVALID_RO_COOKIE = 102,
} DAT_RETURN_SUBTYPE;

#ifdef __cplusplus
}
#endif

#endif /* _DAT_ERROR_H_ */
