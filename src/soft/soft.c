// SPDX-License-Identifier: BSD-2-Clause
/*
 * The transport table of the software RNIC: adapters and memory here, connections in two engines,
 * shm/ and iwarp/ (path.h).
 */
#include "soft/soft.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/transport_stubs.h"
#include "core/ep/ep_fast.h"
#include "core/mem/pz.h"
#include "shared/cm.h"
#include "soft/address.h"
#include "soft/endpoint.h"
#include "soft/iwarp/engine.h"
#include "soft/iwarp/engine/service.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/wire/formats.h"
#include "soft/key.h"
#include "soft/path.h"
#include "soft/pins.h"
#include "soft/shm/bytes/wire.h"
#include "soft/shm/connect/revoke.h"
#include "soft/shm/engine/drive.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/state.h"
#include "soft/shm/transfer/fast.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/rx.h"

/*
 * What dat_ia_query reports as version of the hardware: the version of the protocol between two
 * peers.
 */
#define SOFT_VERSION_MAJOR SHM_WIRE_VERSION
#define SOFT_VERSION_MINOR 0

#define SOFT_READS 64 /* RDMA Reads of one endpoint at once, each way */

/* --- adapter --- */

/* What choose_transport has made of the setting, as dat_ia_query tells it. The structures of
 * DAT 1.2 have no const. */
static const DAT_NAMED_ATTR transport_attr[] = {
	[CORE_TRANSPORT_AUTO] = {"transport", "auto"},
	[CORE_TRANSPORT_SHM] = {"transport", "shm"},
	[CORE_TRANSPORT_TCP] = {"transport", "tcp"},
};

/* What either path can carry (IWCM-16). */
static uint32_t private_max(const struct core_settings *settings)
{
	if (settings->transport == CORE_TRANSPORT_SHM)
		return SHM_PRIVATE_MAX;
	return settings->header == CORE_HEADER_ON ? CM_PRIVATE_MAX : IW_PRIVATE_MAX;
}

static void fill_limits(struct core_ia *ia)
{
	DAT_IA_ATTR *attr = &ia->attr;

	snprintf(attr->vendor_name, sizeof(attr->vendor_name), "OpenDAT");
	attr->hardware_version_major = SOFT_VERSION_MAJOR;
	attr->hardware_version_minor = SOFT_VERSION_MINOR;
	attr->firmware_version_major = SOFT_VERSION_MAJOR;
	attr->firmware_version_minor = SOFT_VERSION_MINOR;
	attr->ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ia->address.sa;
	attr->max_eps = 16384;
	attr->max_dto_per_ep = 32768;
	attr->max_rdma_read_per_ep_in = SOFT_READS;
	attr->max_rdma_read_per_ep_out = SOFT_READS;
	attr->max_evds = 16384;
	attr->max_evd_qlen = 1048576;
	attr->max_iov_segments_per_dto = SOFT_IOV_MAX;
	attr->max_lmrs = 65536;
	attr->max_lmr_block_size = UINT64_C(1) << 46;
	attr->max_lmr_virtual_address = UINT64_MAX;
	attr->max_pzs = 16384;
	attr->max_message_size = UINT64_C(1) << 40;
	attr->max_rdma_size = UINT64_C(1) << 40;
	attr->max_rmrs = 65536;
	attr->max_rmr_target_address = UINT64_MAX;
	attr->max_srqs = 1024;
	attr->max_ep_per_srq = 16384;
	attr->max_recv_per_srq = 32768;
	attr->max_iov_segments_per_rdma_read = SOFT_IOV_MAX;
	attr->max_iov_segments_per_rdma_write = SOFT_IOV_MAX;
	attr->max_rdma_read_in = SOFT_READS * attr->max_eps;
	attr->max_rdma_read_out = SOFT_READS * attr->max_eps;
	attr->max_rdma_read_per_ep_in_guaranteed = DAT_TRUE;
	attr->max_rdma_read_per_ep_out_guaranteed = DAT_TRUE;
	attr->num_transport_attr = 1;
	attr->transport_attr = (DAT_NAMED_ATTR *)&transport_attr[ia->settings.transport];
	ia->link.has_atomics = true;
	ia->link.has_immediate = true;
	soft_address_guid(&ia->address, ia->link.guid);
	ia->provider_attr.max_private_data_size = (DAT_COUNT)private_max(&ia->settings);
	if (ia->settings.transport != CORE_TRANSPORT_SHM)
		attr->max_message_size = UINT32_MAX; /* RDMAP-19 */
}

/* What "auto" means for this adapter. Over TCP nobody can show to be of our user. */
static void choose_transport(struct core_ia *ia)
{
	if (ia->settings.transport == CORE_TRANSPORT_AUTO && ia->settings.peers == CORE_PEERS_USER)
		ia->settings.transport = CORE_TRANSPORT_SHM;
}

static int soft_ia_open(struct core_ia *ia)
{
	struct soft_adapter *adapter;
	int rc;

	if (ia->settings.peers == CORE_PEERS_USER && ia->settings.transport == CORE_TRANSPORT_TCP) {
		core_log(CORE_LOG_ERROR,
			 "%s: peers=user: the users of peers over TCP are not known", ia->device);
		return -EOPNOTSUPP;
	}
	rc = soft_address_of_device(ia->device, &ia->address);
	if (rc < 0)
		return rc;
	choose_transport(ia);
	fill_limits(ia);
	if (ia->is_query)
		return 0;
	adapter = calloc(1, sizeof(*adapter));
	if (!adapter)
		return -ENOMEM;
	adapter->ia = ia;
	rc = soft_keys_create(&adapter->keys);
	if (rc < 0)
		goto err_adapter;
	rc = shm_engine_create(adapter, &adapter->shm);
	if (rc < 0)
		goto err_keys;
	rc = iw_engine_create(adapter, &adapter->tcp);
	if (rc < 0)
		goto err_shm;
	ia->transport = adapter;
	return 0;
err_shm:
	shm_engine_close(adapter->shm);
err_keys:
	soft_keys_destroy(adapter->keys);
err_adapter:
	free(adapter);
	return rc;
}

static void soft_ia_close(struct core_ia *ia)
{
	struct soft_adapter *adapter = soft_adapter_of(ia);

	if (ia->is_query)
		return;
	iw_engine_close(adapter->tcp);
	shm_engine_close(adapter->shm);
	soft_keys_destroy(adapter->keys);
	free(adapter);
	ia->transport = NULL;
}

static int soft_progress(struct core_ia *ia)
{
	struct soft_adapter *adapter = soft_adapter_of(ia);
	int handled = shm_engine_progress(adapter->shm);

	return handled + iw_engine_progress(adapter->tcp);
}

static int soft_arm(struct core_ia *ia)
{
	struct soft_adapter *adapter = soft_adapter_of(ia);
	int busy;

	iw_engine_arm(adapter->tcp);
	busy = shm_engine_arm(adapter->shm);
	if (!busy)
		iw_engine_unattended(adapter->tcp);
	return busy;
}

static void soft_sleep_begin(struct core_ia *ia, struct core_sleep *sleep)
{
	shm_sleep_begin(soft_adapter_of(ia)->shm, sleep);
}

static void soft_sleep_end(struct core_ia *ia, struct core_sleep *sleep)
{
	(void)ia;
	shm_sleep_end(sleep);
}

/* --- memory --- */

static int soft_pz_create(struct core_ia *ia, struct core_pz *pz)
{
	(void)ia;
	pz->transport = NULL; /* the transport uses only the id of the zone */
	return 0;
}

static void soft_pz_destroy(struct core_ia *ia, struct core_pz *pz)
{
	(void)ia;
	(void)pz;
}

static uint32_t rights_of(DAT_MEM_PRIV_FLAGS priv)
{
	uint32_t rights = 0;

	if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		rights |= SOFT_RIGHT_REMOTE_READ;
	if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
		rights |= SOFT_RIGHT_REMOTE_WRITE;
	if (priv & CORE_MEM_PRIV_REMOTE_ATOMIC)
		rights |= SOFT_RIGHT_REMOTE_ATOMIC;
	return rights;
}

static int soft_lmr_create(struct core_ia *ia, struct core_lmr *lmr)
{
	return soft_keys_add(soft_adapter_of(ia)->keys, lmr->address, lmr->length,
			     rights_of(lmr->priv), lmr->pz->id, &lmr->rkey);
}

static void soft_lmr_destroy(struct core_ia *ia, struct core_lmr *lmr)
{
	struct soft_adapter *adapter = soft_adapter_of(ia);

	soft_keys_invalidate(adapter->keys, lmr->rkey);
	iw_engine_wait_key(adapter->tcp, lmr->rkey);
	shm_engine_wait_key(adapter->shm, lmr->rkey);
	shm_map_key_dead(adapter->shm, lmr->rkey);
	soft_keys_release(adapter->keys, lmr->rkey);
}

/* --- memory windows: the transport's key is the number in the table --- */

static void *key_pack(uint32_t key)
{
	return (void *)(uintptr_t)key;
}

static uint32_t key_unpack(void *key)
{
	return (uint32_t)(uintptr_t)key;
}

static int soft_rmr_key_create(struct core_ep *ep, const struct transport_window *window,
			       void **key_out, uint32_t *rkey_out)
{
	int rc = soft_keys_reserve(soft_adapter_of(ep->ia)->keys, window->address, window->length,
				   rights_of(window->priv), window->lmr->pz->id, rkey_out);

	if (!rc)
		*key_out = key_pack(*rkey_out);
	return rc;
}

static void soft_rmr_key_activate(struct core_ia *ia, void *key)
{
	soft_keys_activate(soft_adapter_of(ia)->keys, key_unpack(key));
}

static bool soft_rmr_key_revoke(struct core_ia *ia, void *key)
{
	struct soft_adapter *adapter = soft_adapter_of(ia);
	uint32_t number = key_unpack(key);

	soft_keys_invalidate(adapter->keys, number);
	return !iw_engine_is_key_in_use(adapter->tcp, number) &&
	       !shm_engine_is_key_in_use(adapter->shm, number);
}

static void soft_rmr_key_destroy(struct core_ia *ia, void *key)
{
	struct soft_adapter *adapter = soft_adapter_of(ia);
	uint32_t number = key_unpack(key);

	shm_map_key_dead(adapter->shm, number);
	soft_keys_release(adapter->keys, number);
}

static void soft_kick(struct core_ia *ia)
{
	shm_engine_serve_srqs(soft_adapter_of(ia)->shm);
}

/* --- the fast path: by the engine, too --- */

#define TRANSPORT_FAST_FLAGS                                                                       \
	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |                       \
	 DAT_COMPLETION_BARRIER_FENCE_FLAG)

static void post_to_tcp(struct iw_conn *conn, struct core_ep *ep, struct core_req *req)
{
	core_req_prefetch_next(req);
	if (iw_post_fast(conn, ep, req))
		return;
	core_req_clear_transport(req);
	soft_post_request(ep, req);
}

CORE_INLINE bool transport_post_fast(struct core_handle *cell, struct core_ep *ep,
				     const struct core_fast_post *post)
{
	const struct soft_ep *mine = ep->transport;

	(void)cell;
	if (__builtin_expect(mine->tcp != NULL, false)) {
		post_to_tcp(mine->tcp, ep, post->req);
		return true;
	}
	return shm_post_fast(ep, post);
}

CORE_INLINE bool transport_recv_fast(struct core_handle *cell, struct core_ep *ep,
				     const struct core_fast_post *post)
{
	(void)cell;
	core_recv_prefetch(ep, post->number + 1);
	/*
	 * an arriving message takes it from the endpoint's queue; a message that waits already is a
	 * reason for the slow path
	 */
	return true;
}

CORE_INLINE enum transport_poll transport_poll(struct core_handle *cell, DAT_EVENT *event)
{
	const struct core_ia *ia = ((const struct core_evd *)cell->object)->ia;

	return shm_poll(soft_adapter_of(ia)->shm, cell, event);
}

#include "core/ep/data_path.h"

static const struct transport_ops soft_ops = {
	.name = "soft",

	.ia_open = soft_ia_open,
	.ia_close = soft_ia_close,
	.progress = soft_progress,
	.arm = soft_arm,
	.sleep_begin = soft_sleep_begin,
	.sleep_end = soft_sleep_end,

	.pz_create = soft_pz_create,
	.pz_destroy = soft_pz_destroy,
	.lmr_create = soft_lmr_create,
	.lmr_destroy = soft_lmr_destroy,

	.ep_create = soft_ep_create,
	.ep_detach = soft_ep_detach,
	.ep_destroy = soft_ep_destroy,

	.listen = soft_listen,
	.unlisten = soft_unlisten,

	.connect = soft_connect,
	.accept = soft_accept,
	.reject = soft_reject,
	.disconnect = soft_disconnect,
	.peer = soft_peer,

	.post_request = soft_post_request,
	.post_recv = soft_post_recv,
	.progress_ep = soft_progress_ep,

	.abort = soft_abort,
	.kick = soft_kick,
	.srq_create = transport_no_srq_create,
	.srq_destroy = transport_no_srq_destroy,
	.srq_post = transport_no_srq_post,
	.rmr_key_create = soft_rmr_key_create,
	.rmr_key_retire = transport_no_rmr_key_retire,
	.rmr_key_activate = soft_rmr_key_activate,
	.rmr_key_revoke = soft_rmr_key_revoke,
	.rmr_key_destroy = soft_rmr_key_destroy,
};

const struct transport_ops *const transport_this = &soft_ops;
