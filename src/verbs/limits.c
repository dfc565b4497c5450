// SPDX-License-Identifier: BSD-2-Clause
/* What a device can do: the adapter's limits and the attributes of the IA. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/base/settings.h"
#include "core/mem/mem.h"
#include "shared/cm.h"
#include "verbs/adapter.h"
#include "verbs/device.h"
#include "verbs/table.h"
#include "verbs/window.h"

/* Bytes of private data that the connection managers carry in a request and in an answer. */
#define REQUEST_ROOM_IB 56u
#define ANSWER_ROOM_IB 196u
#define ROOM_IWARP 255u

static uint32_t at_most(uint64_t value, uint32_t most)
{
	return value < most ? (uint32_t)value : most;
}

/* How many bytes fit into a work request. Devices do not report it, but refuse too many. */
static uint32_t probe_inline(struct vrb_adapter *adapter)
{
	static const uint32_t sizes[] = {220, 128, 96, 80, 64, 32};
	struct ibv_pd *pd = ibv_alloc_pd(adapter->context);
	struct ibv_cq *cq = ibv_create_cq(adapter->context, 4, NULL, NULL, 0);
	uint32_t found = 0;

	for (size_t i = 0; pd && cq && !found && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = cq,
			.recv_cq = cq,
			.cap = {.max_send_wr = 2,
				.max_recv_wr = 1,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = sizes[i]},
			.qp_type = IBV_QPT_RC,
		};
		struct ibv_qp *qp = ibv_create_qp(pd, &init);

		if (qp) {
			found = sizes[i];
			(void)ibv_destroy_qp(qp);
		}
	}
	if (cq)
		(void)ibv_destroy_cq(cq);
	if (pd)
		(void)ibv_dealloc_pd(pd);
	return found;
}

static const char *link_text(const struct vrb_adapter *adapter, const struct ibv_port_attr *port)
{
	if (adapter->is_iwarp)
		return "iWARP";
	return port->link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}

static void fill_named(struct vrb_adapter *adapter, const struct ibv_device_attr *device,
		       const struct ibv_port_attr *port)
{
	const DAT_NAMED_ATTR named[] = {
		{"device", adapter->device_text},
		{"link", link_text(adapter, port)},
		{"rmr_bind", adapter->has_windows ? "window" : "registration"},
		{"memory_windows", vrb_windows_text(adapter, device)},
		{"inline_bytes", adapter->inline_text},
		{"fast_path", vrb_has_fast_path(adapter) ? "yes" : "no"},
	};
	DAT_IA_ATTR *attr = &adapter->ia->attr;

	snprintf(adapter->device_text, sizeof(adapter->device_text), "%s port %u",
		 ibv_get_device_name(adapter->context->device), adapter->anchor->port_num);
	snprintf(adapter->inline_text, sizeof(adapter->inline_text), "%u",
		 adapter->limits.inline_max);
	_Static_assert(sizeof(named) <= sizeof(adapter->named), "all have a place");
	memcpy(adapter->named, named, sizeof(named));
	attr->num_transport_attr = sizeof(named) / sizeof(named[0]);
	attr->transport_attr = adapter->named;
}

static void fill_limits(struct vrb_adapter *adapter, const struct ibv_device_attr *device)
{
	struct vrb_limits *limits = &adapter->limits;

	limits->max_wr = (uint32_t)device->max_qp_wr;
	limits->max_sge = at_most((uint64_t)device->max_sge, VRB_SEGMENTS_MAX);
	if (device->max_srq) /* there is one limit for both kinds of Receive */
		limits->max_sge = at_most((uint64_t)device->max_srq_sge, limits->max_sge);
	limits->max_sge_rd =
		device->max_sge_rd ? at_most((uint64_t)device->max_sge_rd, limits->max_sge) : 1;
	limits->max_cqe = (uint32_t)device->max_cqe;
	limits->reads_in = at_most((uint64_t)device->max_qp_rd_atom, VRB_READS_MAX);
	limits->reads_out = at_most((uint64_t)device->max_qp_init_rd_atom, VRB_READS_MAX);
	limits->request_room = adapter->is_iwarp ? ROOM_IWARP : REQUEST_ROOM_IB;
	limits->answer_room = adapter->is_iwarp ? ROOM_IWARP : ANSWER_ROOM_IB;
	limits->inline_max = probe_inline(adapter);
}

static void fill_transfers(struct vrb_adapter *adapter, const struct ibv_port_attr *port)
{
	const struct vrb_limits *limits = &adapter->limits;
	DAT_IA_ATTR *attr = &adapter->ia->attr;
	/* an iWARP Write may take two entries; one is reserved, and one more with windows */
	uint32_t kept = adapter->has_windows ? 3 : 2;
	uint32_t dtos = (limits->max_wr - kept) / (adapter->is_iwarp ? 2 : 1);
	uint32_t message = at_most(port->max_msg_sz, 0x7fffffff);

	/* all completions of an endpoint must fit into one queue */
	attr->max_dto_per_ep =
		(DAT_COUNT)at_most(dtos, (limits->max_cqe - 4) / (adapter->is_iwarp ? 3 : 2));
	attr->max_rdma_read_per_ep_in = (DAT_COUNT)limits->reads_in;
	attr->max_rdma_read_per_ep_out = (DAT_COUNT)limits->reads_out;
	attr->max_rdma_read_per_ep_in_guaranteed = DAT_TRUE;
	attr->max_rdma_read_per_ep_out_guaranteed = DAT_TRUE;
	attr->max_iov_segments_per_dto = (DAT_COUNT)limits->max_sge;
	attr->max_iov_segments_per_rdma_read = (DAT_COUNT)limits->max_sge_rd;
	attr->max_iov_segments_per_rdma_write = (DAT_COUNT)limits->max_sge;
	attr->max_message_size = message;
	attr->max_rdma_size = message;
}

static void fill_counts(struct core_ia *ia, const struct ibv_device_attr *device)
{
	DAT_IA_ATTR *attr = &ia->attr;

	attr->max_eps = (DAT_COUNT)at_most((uint64_t)device->max_qp, VRB_KEY_INDEX_MASK);
	attr->max_evds = 16384;
	attr->max_evd_qlen = 1048576; /* a limit of the core */
	attr->max_lmrs = (DAT_COUNT)at_most((uint64_t)device->max_mr, CORE_MEM_MAX / 2);
	attr->max_lmr_block_size = device->max_mr_size;
	attr->max_lmr_virtual_address = UINT64_MAX;
	attr->max_pzs = (DAT_COUNT)at_most((uint64_t)device->max_pd, 65536);
	attr->max_rmrs = (DAT_COUNT)at_most((uint64_t)device->max_mr, 65536);
	attr->max_rmr_target_address = UINT64_MAX;
	/* each queue may be mapped, and a process has 65530 mappings by default */
	attr->max_srqs = (DAT_COUNT)at_most((uint64_t)device->max_srq, 32768);
	attr->max_ep_per_srq = attr->max_eps;
	attr->max_recv_per_srq =
		(DAT_COUNT)at_most((uint64_t)device->max_srq_wr, (uint32_t)device->max_cqe / 2);
	attr->max_rdma_read_in = device->max_res_rd_atom;
	attr->max_rdma_read_out = device->max_res_rd_atom;
}

static void fill_names(struct core_ia *ia, const struct ibv_device_attr *device)
{
	DAT_IA_ATTR *attr = &ia->attr;
	unsigned major = 0, minor = 0;

	snprintf(attr->vendor_name, sizeof(attr->vendor_name), "%06x/%u", device->vendor_id,
		 device->vendor_part_id);
	attr->hardware_version_major = device->hw_ver;
	attr->hardware_version_minor = 0;
	(void)sscanf(device->fw_ver, "%u.%u", &major, &minor);
	attr->firmware_version_major = major;
	attr->firmware_version_minor = minor;
	attr->ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ia->address.sa;
}

/*
 * Does posting or polling make system calls? The libraries of adapters that map their queues into
 * the process make none. Those of the software devices make one for each Send, and those of some
 * adapters (cxgb4) at times. A library does not report it, so the vendors whose libraries are known
 * are listed here. The others are assumed to make system calls, which only costs some time
 * (post.c). With cancellation=never it does not matter.
 */
static void find_system_calls(struct vrb_adapter *adapter, uint32_t vendor)
{
	static const struct {
		uint32_t vendor;
		bool posts_in_kernel;
	} known[] = {
		{0x0002c9, false}, /* NVIDIA, Mellanox: mlx4, mlx5 */
		{0x008086, false}, /* Intel: irdma */
		{0x0014e4, false}, /* Broadcom: bnxt_re */
		{0x001077, false}, /* Marvell: qedr */
		{VRB_VENDOR_RXE, true}, {VRB_VENDOR_SIW, true},
	};

	adapter->posts_in_kernel = adapter->polls_in_kernel =
		adapter->ia->settings.cancellation != CORE_CANCELLATION_NEVER;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (vendor != known[i].vendor || !adapter->posts_in_kernel)
			continue;
		adapter->posts_in_kernel = known[i].posts_in_kernel;
		adapter->polls_in_kernel = false;
	}
}

int vrb_device_limits(struct vrb_adapter *adapter)
{
	struct core_ia *ia = adapter->ia;
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;

	memset(&device, 0, sizeof(device));
	memset(&port, 0, sizeof(port));
	if (ibv_query_device_ex(adapter->context, NULL, &device) ||
	    ibv_query_port(adapter->context, adapter->anchor->port_num, &port))
		return -ENODEV;
	find_system_calls(adapter, device.orig_attr.vendor_id);
	adapter->is_siw = adapter->is_iwarp && device.orig_attr.vendor_id == VRB_VENDOR_SIW;
	vrb_windows_choose(adapter, &device.orig_attr);
	fill_limits(adapter, &device.orig_attr);
	fill_transfers(adapter, &port);
	fill_counts(ia, &device.orig_attr);
	fill_names(ia, &device.orig_attr);
	fill_named(adapter, &device.orig_attr, &port);
	ia->provider_attr.max_private_data_size = CM_PRIVATE_MAX;
	ia->provider_attr.srq_supported = device.orig_attr.max_srq ? DAT_TRUE : DAT_FALSE;
	/* only the low one: a device does not show which buffers an endpoint holds */
	ia->provider_attr.srq_watermarks_supported = 0x001;
	/* some devices check the memory of a Receive against the protection domain of the queue
	 * pair */
	ia->provider_attr.srq_ep_pz_difference_supported = DAT_FALSE;
	return 0;
}
