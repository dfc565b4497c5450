// SPDX-License-Identifier: BSD-2-Clause
/*
 * The types and values of DAT 2.0 that differ from those of DAT 1.2. The headers of both
 * generations have the same names and include guards, so one source file cannot include both; here
 * they have names of their own. check.c compares them with <dat2/udat.h>.
 */
#ifndef DAT2_TYPES_H
#define DAT2_TYPES_H

#include <stdarg.h>
#include <stdint.h>

#include <dat/udat.h>

#define DAT2_VERSION_MAJOR 2
#define DAT2_VERSION_MINOR 0

struct dat2_comm {
	int domain;
	int type;
	int protocol;
};

struct dat2_lmr_triplet {
	DAT_VADDR virtual_address;
	uint32_t segment_length;
	DAT_LMR_CONTEXT lmr_context;
};

struct dat2_rmr_triplet {
	DAT_VADDR virtual_address;
	uint32_t segment_length;
	DAT_RMR_CONTEXT rmr_context;
};

/* --- events --- */

struct dat2_dto_data {
	DAT_EP_HANDLE ep_handle;
	DAT_DTO_COOKIE user_cookie;
	DAT_DTO_COMPLETION_STATUS status;
	uint32_t transfered_length;
	uint32_t operation;
	DAT_RMR_CONTEXT rmr_context;
};

struct dat2_cr_arrival_data {
	DAT_SP_HANDLE sp_handle;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_CONN_QUAL conn_qual;
	DAT_CR_HANDLE cr_handle;
	DAT_BOOLEAN truncate_flag;
};

/* The extension data of InfiniBand, in the last words of an event. */
struct dat2_ib_data {
	uint32_t type;
	uint32_t status;
	uint32_t immediate;
	uint32_t pad;
	uint64_t other[5];
	DAT_CONTEXT context;
};

struct dat2_event {
	uint32_t event_number;
	DAT_EVD_HANDLE evd_handle;
	union {
		struct dat2_dto_data dto;
		struct dat2_cr_arrival_data cr_arrival;
		DAT_RMR_BIND_COMPLETION_EVENT_DATA bind;
		DAT_CONNECTION_EVENT_DATA connection;
		DAT_ASYNCH_ERROR_EVENT_DATA asynch;
		DAT_SOFTWARE_EVENT_DATA software;
	} data;
	union {
		uint64_t words[8];
		struct dat2_ib_data ib;
	} extension;
};

#define DAT2_IB_DTO_EVENT 0x40000

enum dat2_operation {
	DAT2_SEND = 0,
	DAT2_RDMA_WRITE = 1,
	DAT2_RDMA_READ = 2,
	DAT2_RECEIVE = 3,
	DAT2_RECEIVE_WITH_INVALIDATE = 4,
	DAT2_IB_RDMA_WRITE_IMMED = 8,
	DAT2_IB_RECV_IMMED = 9,
	DAT2_IB_FETCH_ADD = 10,
	DAT2_IB_CMP_SWAP = 11,
};

enum dat2_ib_type {
	DAT2_IB_TYPE_FETCH_ADD = 0,
	DAT2_IB_TYPE_CMP_SWAP = 1,
	DAT2_IB_TYPE_WRITE_IMMED = 2,
	DAT2_IB_TYPE_WRITE_IMMED_DATA = 3,
};

/* --- attributes and parameters --- */

#define DAT2_IA_FIELD_ALL UINT64_C(0x3fffffffff)
#define DAT2_PROVIDER_FIELD_ALL UINT64_C(0x7fffffff)

struct dat2_ia_attr {
	char adapter_name[DAT_NAME_MAX_LENGTH];
	char vendor_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 hardware_version_major;
	DAT_UINT32 hardware_version_minor;
	DAT_UINT32 firmware_version_major;
	DAT_UINT32 firmware_version_minor;
	DAT_IA_ADDRESS_PTR ia_address_ptr;
	DAT_COUNT max_eps;
	DAT_COUNT max_dto_per_ep;
	DAT_COUNT max_rdma_read_per_ep_in;
	DAT_COUNT max_rdma_read_per_ep_out;
	DAT_COUNT max_evds;
	DAT_COUNT max_evd_qlen;
	DAT_COUNT max_iov_segments_per_dto;
	DAT_COUNT max_lmrs;
	uint32_t max_lmr_block_size;
	DAT_VADDR max_lmr_virtual_address;
	DAT_COUNT max_pzs;
	uint32_t max_message_size;
	uint32_t max_rdma_size;
	DAT_COUNT max_rmrs;
	DAT_VADDR max_rmr_target_address;
	DAT_COUNT max_srqs;
	DAT_COUNT max_ep_per_srq;
	DAT_COUNT max_recv_per_srq;
	DAT_COUNT max_iov_segments_per_rdma_read;
	DAT_COUNT max_iov_segments_per_rdma_write;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
	DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
	DAT_BOOLEAN zb_supported;
	uint32_t extension_supported;
	DAT_COUNT extension_version;
	DAT_COUNT num_transport_attr;
	DAT_NAMED_ATTR *transport_attr;
	DAT_COUNT num_vendor_attr;
	DAT_NAMED_ATTR *vendor_attr;
};

#define DAT2_EXTENSION_IB 1
#define DAT2_IB_EXTENSION_VERSION 209

struct dat2_provider_attr {
	char same[488]; /* as in DAT 1.2 */
	DAT_BOOLEAN rdma_read_lmr_rmr_context_exposure;
	uint32_t rmr_scope_supported;
	DAT_BOOLEAN is_signal_safe;
	DAT_BOOLEAN ha_supported;
	DAT_UINT32 ha_loadbalancing;
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
};

enum dat2_rmr_scope {
	DAT2_RMR_SCOPE_EP = 0,
	DAT2_RMR_SCOPE_PZ = 1,
	DAT2_RMR_SCOPE_ANY = 2,
};

enum dat2_va_type {
	DAT2_VA_TYPE_VA = 0,
	DAT2_VA_TYPE_ZB = 1,
};

struct dat2_ep_attr {
	DAT_SERVICE_TYPE service_type;
	uint32_t max_message_size;
	uint32_t max_rdma_size;
	DAT_QOS qos;
	DAT_COMPLETION_FLAGS recv_completion_flags;
	DAT_COMPLETION_FLAGS request_completion_flags;
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_request_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT max_request_iov;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_COUNT srq_soft_hw;
	DAT_COUNT max_rdma_read_iov;
	DAT_COUNT max_rdma_write_iov;
	DAT_COUNT ep_transport_specific_count;
	DAT_NAMED_ATTR *ep_transport_specific;
	DAT_COUNT ep_provider_specific_count;
	DAT_NAMED_ATTR *ep_provider_specific;
};

#define DAT2_SERVICE_TYPE_UD 1

struct dat2_ep_param {
	DAT_IA_HANDLE ia_handle;
	DAT_EP_STATE ep_state;
	struct dat2_comm comm;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_PORT_QUAL local_port_qual;
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_PZ_HANDLE pz_handle;
	DAT_EVD_HANDLE recv_evd_handle;
	DAT_EVD_HANDLE request_evd_handle;
	DAT_EVD_HANDLE connect_evd_handle;
	DAT_SRQ_HANDLE srq_handle;
	struct dat2_ep_attr ep_attr;
};

/* The bits between those of the state and of the attributes have moved up by one. */
#define DAT2_EP_FIELD_COMM UINT64_C(0x4)
#define DAT2_EP_FIELD_MOVED UINT64_C(0xff8)
#define DAT2_EP_FIELD_ALL UINT64_C(0x7fffffff)

struct dat2_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	uint32_t va_type;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size;
	DAT_VADDR registered_address;
};

#define DAT2_LMR_FIELD_ALL 0x7ffu
#define DAT2_MEM_PRIV_REMOTE_ATOMIC 0x40

struct dat2_rmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_PZ_HANDLE pz_handle;
	struct dat2_lmr_triplet lmr_triplet;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_RMR_CONTEXT rmr_context;
	uint32_t rmr_scope;
	uint32_t va_type;
};

#define DAT2_RMR_FIELD_LMR_TRIPLET 0x4u
#define DAT2_RMR_FIELD_ALL 0x7fu

struct dat2_cno_param {
	DAT_IA_HANDLE ia_handle;
	uint32_t proxy_type;
	union {
		DAT_OS_WAIT_PROXY_AGENT agent;
		int fd;
		void *none;
	} proxy;
};

#define DAT2_CNO_FIELD_MOST 7u
#define DAT2_PROXY_TYPE_NONE 0
#define DAT2_PROXY_TYPE_AGENT 1
#define DAT2_PROXY_TYPE_FD 2

#define DAT2_SRQ_STATE_ERROR 0
#define DAT2_SRQ_STATE_OPERATIONAL 1

#define DAT2_EVD_EXTENSION_BASE 0x200
#define DAT2_CONNECT_MULTIPATH_REQUESTED 0x1
#define DAT2_CONNECT_MULTIPATH_REQUIRED 0x2

/* --- return codes --- */

#define DAT2_NOT_IMPLEMENTED 0x3fff0000u

/* --- extended operations --- */

enum dat2_ib_op {
	DAT2_IB_FETCH_AND_ADD_OP = 0,
	DAT2_IB_CMP_AND_SWAP_OP = 1,
	DAT2_IB_RDMA_WRITE_IMMED_OP = 2,
	DAT2_IB_QUERY_COUNTERS_OP = 4,
	DAT2_IB_PRINT_COUNTERS_OP = 5,
	DAT2_IB_START_COUNTERS_OP = 26,
	DAT2_IB_STOP_COUNTERS_OP = 27,
	DAT2_IB_OPEN_QUERY_OP = 0x1000,
	DAT2_IB_CLOSE_QUERY_OP = 0x2000,
};

/* --- counters: those that are counted, and how many there are --- */

enum dat2_ia_counter {
	DAT2_IA_PZ_CREATE = 0,
	DAT2_IA_PZ_FREE = 1,
	DAT2_IA_LMR_CREATE = 2,
	DAT2_IA_LMR_FREE = 3,
	DAT2_IA_RMR_CREATE = 4,
	DAT2_IA_RMR_FREE = 5,
	DAT2_IA_PSP_CREATE = 6,
	DAT2_IA_PSP_CREATE_ANY = 7,
	DAT2_IA_PSP_FREE = 8,
	DAT2_IA_RSP_CREATE = 9,
	DAT2_IA_RSP_FREE = 10,
	DAT2_IA_EVD_CREATE = 11,
	DAT2_IA_EVD_FREE = 12,
	DAT2_IA_EP_CREATE = 13,
	DAT2_IA_EP_FREE = 14,
	DAT2_IA_SRQ_CREATE = 15,
	DAT2_IA_SRQ_FREE = 16,
	DAT2_IA_SP_CR = 17,
	DAT2_IA_SP_CR_ACCEPTED = 18,
	DAT2_IA_SP_CR_REJECTED = 19,
	DAT2_IA_ASYNC_ERROR = 23,
	DAT2_IA_CM_ACTIVE_EST = 35,
	DAT2_IA_CM_PASSIVE_EST = 36,
	DAT2_IA_ALL_COUNTERS = 85,
};

enum dat2_ep_counter {
	DAT2_EP_CONNECT = 0,
	DAT2_EP_DISCONNECT = 1,
	DAT2_EP_POST_SEND = 2,
	DAT2_EP_POST_SEND_DATA = 3,
	DAT2_EP_POST_RECV = 6,
	DAT2_EP_POST_RECV_DATA = 7,
	DAT2_EP_POST_WRITE = 8,
	DAT2_EP_POST_WRITE_DATA = 9,
	DAT2_EP_POST_WRITE_IMM = 10,
	DAT2_EP_POST_WRITE_IMM_DATA = 11,
	DAT2_EP_POST_READ = 12,
	DAT2_EP_POST_READ_DATA = 13,
	DAT2_EP_POST_CMP_SWAP = 14,
	DAT2_EP_POST_FETCH_ADD = 15,
	DAT2_EP_RECV = 16,
	DAT2_EP_RECV_DATA = 17,
	DAT2_EP_RECV_RDMA_IMM = 22,
	DAT2_EP_RECV_RDMA_IMM_DATA = 23,
	DAT2_EP_ALL_COUNTERS = 24,
};

enum dat2_evd_counter {
	DAT2_EVD_WAIT = 0,
	DAT2_EVD_WAIT_BLOCKED = 1,
	DAT2_EVD_WAIT_NOTIFY = 2,
	DAT2_EVD_DEQUEUE = 3,
	DAT2_EVD_DEQUEUE_FOUND = 4,
	DAT2_EVD_DEQUEUE_NOT_FOUND = 5,
	DAT2_EVD_ALL_COUNTERS = 10,
};

enum dat2_counter_type {
	DAT2_COUNTERS_CM = 0,
	DAT2_COUNTERS_LNK = 1,
	DAT2_COUNTERS_DIAG = 2,
};

#endif
