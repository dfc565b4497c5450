// SPDX-License-Identifier: BSD-2-Clause
/*
 * Devices: addresses, the life of an instance's device, and what it can do. librdmacm opens a
 * device once in a process and keeps it open, in a child of the process too. Each instance opens
 * the device once more, so that its file and its events are its own.
 */
#include "verbs/device/device.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "core/base/instance.h"
#include "core/base/log.h"
#include "core/base/netaddr.h"
#include "core/base/settings.h"
#include "core/mem/mem.h"
#include "shared/cm.h"
#include "shared/fd.h"
#include "verbs/device/cq.h"

/* --- addresses --- */

/* Reads the first line of a small file. */
static bool line_read(const char *path, char *line_out, size_t size)
{
	ssize_t len = -1;
	int fd = opendat_fd_move(open(path, O_RDONLY | O_CLOEXEC));

	if (fd >= 0) {
		len = read(fd, line_out, size - 1);
		close(fd);
	}
	if (len <= 0)
		return false;
	line_out[len] = '\0';
	line_out[strcspn(line_out, "\n")] = '\0';
	return line_out[0] != '\0';
}

/* Finds the netdev whose hardware address the GID of an iWARP device begins with. */
static bool netdev_by_gid(const char *gid, char *netdev_out, size_t size)
{
	char path[300], mac[32], packed[16];
	struct dirent *item;
	bool is_found = false;
	DIR *dir = opendir("/sys/class/net");

	while (dir && !is_found && (item = readdir(dir))) {
		if (item->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/class/net/%s/address", item->d_name);
		if (!line_read(path, mac, sizeof(mac)) || strlen(mac) != 17)
			continue;
		/* aa:bb:cc:dd:ee:ff is aabb:ccdd:eeff at the beginning of a GID */
		snprintf(packed, sizeof(packed), "%.2s%.2s:%.2s%.2s:%.2s%.2s", mac, mac + 3,
			 mac + 6, mac + 9, mac + 12, mac + 15);
		is_found = !strncmp(gid, packed, 14);
		if (is_found)
			snprintf(netdev_out, size, "%.*s", IFNAMSIZ - 1, item->d_name);
	}
	if (dir)
		closedir(dir);
	return is_found;
}

/* Finds the netdev of a port of the RDMA device with that name. */
static bool netdev_of_rdma(const char *device, uint32_t port, char *netdev_out, size_t size)
{
	char path[256], gid[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/0", device,
		 port);
	if (line_read(path, netdev_out, size))
		return true;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/gids/0", device, port);
	return line_read(path, gid, sizeof(gid)) && netdev_by_gid(gid, netdev_out, size);
}

static bool is_broadcast(const union core_sockaddr *address)
{
	union core_sockaddr copy = *address;
	bool is_one;
	int fd = opendat_fd_move(socket(address->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));

	if (fd < 0)
		return false;
	if (copy.sa.sa_family == AF_INET)
		copy.in.sin_port = htons(9);
	else
		copy.in6.sin6_port = htons(9);
	is_one = core_address_is_broadcast(fd, &copy);
	close(fd);
	return is_one;
}

int vrb_address_check(const union core_sockaddr *address)
{
	if (address->sa.sa_family != AF_INET && address->sa.sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	return core_address_is_unusable(address) || is_broadcast(address) ? -EADDRNOTAVAIL : 0;
}

int vrb_address_of_device(const char *device, uint32_t port, union core_sockaddr *address_out)
{
	char netdev[CORE_DEVICE_MAX];
	int rc = core_address_parse(device, address_out);

	if (rc != -EINVAL)
		return rc;
	if (!strchr(device, '/') && netdev_of_rdma(device, port ? port : 1, netdev, sizeof(netdev)))
		return core_address_of_netdev(netdev, address_out);
	return core_address_of_netdev(device, address_out);
}

/* --- the instance --- */

void vrb_adapter_get(struct vrb_adapter *adapter)
{
	/* relaxed: the caller holds a reference, or the instance is open */
	atomic_fetch_add_explicit(&adapter->refs, 1, memory_order_relaxed);
}

void vrb_adapter_put(struct vrb_adapter *adapter)
{
	if (atomic_fetch_sub_explicit(&adapter->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&adapter->lock);
	free(adapter->slots);
	free((void *)adapter->ep_cells);
	free(adapter);
}

int vrb_adapter_create(struct core_ia *ia, struct vrb_adapter **adapter_out)
{
	struct vrb_adapter *adapter = calloc(1, sizeof(*adapter));
	int rc;

	if (!adapter)
		return -ENOMEM;
	adapter->ia = ia;
	atomic_init(&adapter->refs, 1);
	atomic_init(&adapter->deadline_ns, VRB_NEVER);
	core_service_init(&adapter->service);
	pthread_mutex_init(&adapter->lock, NULL);
	rc = vrb_slots_create(adapter);
	if (rc)
		vrb_adapter_put(adapter);
	else
		*adapter_out = adapter;
	return rc;
}

int vrb_object_create(const struct vrb_adapter *adapter, size_t size, void **object_out)
{
	if (atomic_load(&adapter->is_dead))
		return -ENODEV;
	*object_out = calloc(1, size);
	return *object_out ? 0 : -ENOMEM;
}

/* --- children of the process --- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
static struct vrb_adapter *list_first;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static unsigned fillers; /* calls between vrb_fds_fill and vrb_fds_unfill */
static unsigned filled;	 /* what they have opened */

static void fork_prepare(void)
{
	pthread_mutex_lock(&list_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&list_lock);
}

/*
 * A child cannot use the parent's instances, and must not hide the parent's death from its peers.
 * So the descriptors that it inherits are closed (GEN-34).
 */
static void fork_child(void)
{
	for (const struct vrb_adapter *i = list_first; i; i = i->next) {
		close(i->channel->fd);
		close(i->completions->fd);
		close(i->context->async_fd);
		close(i->context->cmd_fd);
	}
	list_first = NULL;
	opendat_fd_unfill(filled); /* the threads that would are not in the child */
	filled = 0;
	fillers = 0;
	pthread_mutex_unlock(&list_lock);
}

static void fork_watch(void)
{
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void vrb_fds_fill(void)
{
	pthread_once(&fork_once, fork_watch);
	pthread_mutex_lock(&list_lock);
	fillers++;
	filled |= opendat_fd_fill();
	pthread_mutex_unlock(&list_lock);
}

void vrb_fds_unfill(void)
{
	pthread_mutex_lock(&list_lock);
	if (!--fillers) {
		opendat_fd_unfill(filled);
		filled = 0;
	}
	pthread_mutex_unlock(&list_lock);
}

/* --- opening --- */

/* Logs which call failed, with errno, and returns what dat_ia_open reports. */
static int open_failed(const struct vrb_adapter *adapter, const char *call)
{
	int error = errno;

	core_log(CORE_LOG_ERROR, "%s: %s: %s", adapter->ia->device, call, strerror(error));
	return error == ENOMEM || error == EMFILE ? -error : -ENODEV;
}

int vrb_device_open(struct vrb_adapter *adapter)
{
	union core_sockaddr address = adapter->ia->address;
	int rc;

	adapter->channel = rdma_create_event_channel();
	if (!adapter->channel)
		return open_failed(adapter, "rdma_create_event_channel");
	if (rdma_create_id(adapter->channel, &adapter->anchor, NULL, RDMA_PS_TCP)) {
		adapter->anchor = NULL;
		rc = open_failed(adapter, "rdma_create_id");
		goto fail;
	}
	if (rdma_bind_addr(adapter->anchor, &address.sa)) {
		(void)open_failed(adapter, "rdma_bind_addr");
		rc = -ENODEV;
		goto fail;
	}
	if (!adapter->anchor->verbs) {
		core_log(CORE_LOG_ERROR, "%s: the address belongs to no single RDMA device",
			 adapter->ia->device);
		rc = -ENODEV;
		goto fail;
	}
	errno = 0;
	adapter->context = ibv_open_device(adapter->anchor->verbs->device);
	if (!adapter->context) {
		rc = open_failed(adapter, "ibv_open_device");
		goto fail;
	}
	adapter->is_iwarp = adapter->context->device->transport_type == IBV_TRANSPORT_IWARP;
	adapter->completions = ibv_create_comp_channel(adapter->context);
	if (!adapter->completions) {
		rc = -ENOMEM;
		goto fail;
	}
	pthread_mutex_lock(&list_lock);
	adapter->next = list_first;
	list_first = adapter;
	pthread_mutex_unlock(&list_lock);
	return 0;
fail:
	if (adapter->context)
		(void)ibv_close_device(adapter->context);
	if (adapter->anchor)
		(void)rdma_destroy_id(adapter->anchor);
	rdma_destroy_event_channel(adapter->channel);
	return rc;
}

void vrb_device_close(struct vrb_adapter *adapter)
{
	struct vrb_adapter **link = &list_first;

	pthread_mutex_lock(&list_lock);
	while (*link != adapter)
		link = &(*link)->next;
	*link = adapter->next;
	pthread_mutex_unlock(&list_lock);
	(void)ibv_destroy_comp_channel(adapter->completions);
	(void)ibv_close_device(adapter->context);
	(void)rdma_destroy_id(adapter->anchor);
	rdma_destroy_event_channel(adapter->channel);
}

bool vrb_device_is_up(struct vrb_adapter *adapter)
{
	struct ibv_port_attr port;

	memset(&port, 0, sizeof(port));
	return !ibv_query_port(adapter->context, adapter->anchor->port_num, &port) &&
	       port.state == IBV_PORT_ACTIVE;
}

/* --- limits --- */

#define VRB_READS_MAX 254u /* 255 means "as many as the device has" to librdmacm */

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

/* --- limits: memory windows --- */

/*
 * rxe checks a window's privileges, but the bounds of its region instead of its own. A peer could
 * access memory outside of the window.
 */
static bool has_unchecked_bounds(const struct vrb_adapter *adapter,
				 const struct ibv_device_attr *device)
{
	return !adapter->is_iwarp && device->vendor_id == VRB_VENDOR_RXE;
}

/* Devices report whether they have windows, libraries do not. */
static bool can_allocate(struct vrb_adapter *adapter)
{
	struct ibv_pd *pd = ibv_alloc_pd(adapter->context);
	struct ibv_mw *mw = pd ? ibv_alloc_mw(pd, IBV_MW_TYPE_1) : NULL;

	if (mw)
		(void)ibv_dealloc_mw(mw);
	if (pd)
		(void)ibv_dealloc_pd(pd);
	return mw;
}

static bool has_type_1(const struct ibv_device_attr *device)
{
	return device->max_mw > 0 && (device->device_cap_flags & IBV_DEVICE_MEM_WINDOW);
}

/* Decides whether binds use windows, by the device and the setting rmr_bind. */
static void choose_windows(struct vrb_adapter *adapter, const struct ibv_device_attr *device)
{
	uint64_t wanted = adapter->ia->settings.rmr_bind;

	adapter->has_windows =
		wanted != CORE_RMR_REGISTRATION && has_type_1(device) &&
		(wanted == CORE_RMR_WINDOW || !has_unchecked_bounds(adapter, device)) &&
		can_allocate(adapter);
	if (wanted == CORE_RMR_WINDOW && !adapter->has_windows)
		core_log(CORE_LOG_ERROR,
			 "%s: no memory windows of type 1: rmr_bind=window is as "
			 "rmr_bind=registration",
			 adapter->ia->device);
}

/* The windows that the device has, for dat_ia_query. */
static const char *windows_text(const struct vrb_adapter *adapter,
				const struct ibv_device_attr *device)
{
	if (device->max_mw <= 0)
		return "none";
	if (!has_type_1(device))
		return "type 2, which serves no RMR";
	return has_unchecked_bounds(adapter, device) ? "type 1, bounds unchecked" : "type 1";
}

/* --- limits: attributes of the IA --- */

static const char *link_text(const struct vrb_adapter *adapter, const struct ibv_port_attr *port)
{
	if (adapter->is_iwarp)
		return "iWARP";
	return port->link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}

/* Towards what its atomic operations are atomic (D2-ATOM-19). */
static const char *atomics_text(const struct ibv_device_attr *device)
{
	if (device->atomic_cap == IBV_ATOMIC_NONE)
		return "none";
	return device->atomic_cap == IBV_ATOMIC_GLOB ? "device and processor" : "device";
}

static void fill_named(struct vrb_adapter *adapter, const struct ibv_device_attr *device,
		       const struct ibv_port_attr *port)
{
	const DAT_NAMED_ATTR named[] = {
		{"device", adapter->device_text},
		{"link", link_text(adapter, port)},
		{"rmr_bind", adapter->has_windows ? "window" : "registration"},
		{"memory_windows", windows_text(adapter, device)},
		{"inline_bytes", adapter->inline_text},
		{"fast_path", vrb_has_fast_path(adapter) ? "yes" : "no"},
		{"atomics", atomics_text(device)},
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

/*
 * What the device can do beside Sends and RDMA. iWARP devices have no immediate data, which name
 * the key of a Send with Invalidate. A device that returned the value of an atomic operation in
 * another byte order would report that it has none (D2-VRB-05).
 */
static void fill_takes(struct vrb_adapter *adapter, const struct ibv_device_attr *device)
{
	struct core_link *link = &adapter->ia->link;

	link->has_immediate = !adapter->is_iwarp;
	link->has_atomics = !adapter->is_iwarp && device->atomic_cap != IBV_ATOMIC_NONE;
	if (link->has_immediate)
		adapter->takes = TRANSPORT_TAKES_IMMEDIATE | TRANSPORT_TAKES_INVALIDATE;
	if (link->has_atomics)
		adapter->takes |= TRANSPORT_TAKES_ATOMICS;
}

/* What programs of DAT 2.0 look for by name (D2-ATTR-02, D2-ATTR-05 to D2-ATTR-09). */
static void fill_link(struct vrb_adapter *adapter, const struct ibv_port_attr *port)
{
	const uint64_t guid = ibv_get_device_guid(adapter->context->device); /* network order */
	struct core_link *link = &adapter->ia->link;
	union ibv_gid gid;

	link->device = ibv_get_device_name(adapter->context->device);
	link->port = adapter->anchor->port_num;
	memcpy(link->guid, &guid, sizeof(guid));
	link->has_gid = !ibv_query_gid(adapter->context, adapter->anchor->port_num, 0, &gid);
	if (link->has_gid)
		memcpy(link->gid, gid.raw, sizeof(gid.raw));
	link->mtu = 128u << port->active_mtu; /* IBV_MTU_256 is 1 */
	link->is_down = port->state != IBV_PORT_ACTIVE;
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
 * (transfer/post.c). With cancellation=never it does not matter.
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
	choose_windows(adapter, &device.orig_attr);
	fill_limits(adapter, &device.orig_attr);
	fill_takes(adapter, &device.orig_attr);
	fill_link(adapter, &port);
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
