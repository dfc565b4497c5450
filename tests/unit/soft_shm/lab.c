// SPDX-License-Identifier: BSD-2-Clause
/* The bench of lab.h, and the stand-ins for the core. */
#include "lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/ep_done.h"
#include "soft/bounce.h"
#include "soft/fds.h"

#define GUARD_BYTE 0xa5

static struct lab *the_lab;
static struct soft_keys *own_table, *peer_table;

/* Not assert: these must hold in every build. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* --- the core, as far as the engine calls it --- */

struct core_lmr core_mem_none;

/* All events are told whether they are notifications (make_evd). */
void core_evd_notify_locked(struct core_evd *evd)
{
	struct lab_evd *mine = (struct lab_evd *)evd;

	mine->was_notified = true;
}

void core_evd_overflow_locked(struct core_evd *evd, struct core_ref srq)
{
	(void)evd;
	(void)srq;
	abort();
}

void core_req_raise_done(struct core_ep *ep)
{
	while (ep->req.head < ep->req.tail && core_req_at(&ep->req, ep->req.head)->is_done)
		ep->req.head++;
}

struct core_ep *core_ep_enter(struct core_ref ref)
{
	void (*entering)(struct lab *) = the_lab->entering;

	the_lab->entering = NULL;
	if (entering)
		entering(the_lab);
	return ref.cell == &the_lab->cell ? &the_lab->ep : NULL;
}

void core_ep_leave(struct core_ep *ep)
{
	(void)ep;
}

void core_ep_established(struct core_ep *ep, const struct transport_conn_param *peer)
{
	(void)peer;
	ep->state = DAT_EP_STATE_CONNECTED;
}

void core_ep_connect_failed(struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	core_ep_ended(ep, number);
}

void core_ep_ended(struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	MUST(the_lab->end == 0);
	the_lab->end = number;
	ep->state = DAT_EP_STATE_DISCONNECTED;
}

void core_req_done(struct core_ep *ep, struct core_req *req, DAT_DTO_COMPLETION_STATUS status,
		   DAT_VLEN len)
{
	(void)len;
	MUST(the_lab->end == 0);
	MUST(req->sequence >= ep->req.head && req->sequence < ep->req.tail && !req->is_done);
	req->is_done = true;
	req->status = status;
	the_lab->done++;
	the_lab->done_status = status;
	core_req_raise_done(ep);
}

const struct core_wqe *core_recv_next(struct core_ep *ep)
{
	return core_recv_at(ep, 0);
}

const struct core_wqe *core_recv_at(const struct core_ep *ep, uint32_t behind)
{
	if (ep->recv.tail - ep->recv.head <= behind)
		return NULL;
	return &ep->recv.slots[(ep->recv.head + behind) & ep->recv.mask];
}

void core_recv_done(struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len,
		    bool is_solicited)
{
	const struct core_wqe *receive = core_recv_next(ep);

	MUST(the_lab->end == 0 && receive);
	MUST(status != DAT_DTO_SUCCESS || len <= receive->len);
	ep->recv.head++;
	the_lab->received++;
	the_lab->receive_status = status;
	the_lab->receive_len = len;
	the_lab->receive_solicited = is_solicited;
}

struct core_lmr *core_mem_get_registered(struct core_mem *mem, const DAT_LMR_TRIPLET *segment)
{
	(void)mem;
	(void)segment;
	return NULL; /* freed meanwhile, as far as the service thread can tell */
}

struct core_pz *core_recv_pz(const struct core_ep *ep)
{
	return ep->pz;
}

void core_srq_serve_all(struct core_ia *ia)
{
	(void)ia;
}

int core_sp_request(struct core_ref sp, const struct transport_request *request)
{
	(void)sp;
	(void)request;
	return -1;
}

struct core_lmr *core_mem_get(struct core_mem *mem, const DAT_LMR_TRIPLET *segment,
			      const struct core_pz *pz, enum core_mem_use use)
{
	uint64_t start = (uintptr_t)the_lab->memory;

	(void)mem;
	(void)use;
	the_lab->lookups++;
	if (segment->lmr_context != LAB_LOCAL_KEY || segment->virtual_address < start ||
	    segment->segment_length > LAB_MEMORY ||
	    segment->virtual_address - start > LAB_MEMORY - segment->segment_length)
		return NULL;
	if (the_lab->is_usual &&
	    (atomic_load(&the_lab->lmr.key) != segment->lmr_context || the_lab->lmr.pz != pz))
		return NULL;
	core_pin(&the_lab->lmr);
	return &the_lab->lmr;
}

enum core_bind core_bind_run(struct core_ep *ep, struct core_req *req, bool is_ready)
{
	(void)ep;
	(void)req;
	(void)is_ready;
	abort();
}

/* --- the bench --- */

static uint8_t *make_memory(void)
{
	uint8_t *block = mmap(NULL, LAB_MEMORY + 2 * LAB_GUARD, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(block != MAP_FAILED);
	memset(block, GUARD_BYTE, LAB_MEMORY + 2 * LAB_GUARD);
	return block + LAB_GUARD;
}

static void drop_memory(uint8_t *memory)
{
	uint32_t i;

	for (i = 0; i < LAB_GUARD; i++)
		MUST(memory[-1 - (int)i] == GUARD_BYTE && memory[LAB_MEMORY + i] == GUARD_BYTE);
	munmap(memory - LAB_GUARD, LAB_MEMORY + 2 * LAB_GUARD);
}

static void make_core(struct lab *lab, enum core_copy_path copy)
{
	lab->ia.settings = (struct core_settings){.copy = copy, .peer_timeout_ms = 50};
	lab->pz.id = 7;
	lab->cell.object = &lab->ep;
	lab->ep.cell = &lab->cell;
	lab->ep.ia = &lab->ia;
	lab->ep.pz = &lab->pz;
	lab->ep.state = DAT_EP_STATE_CONNECTED;
	lab->ep.req.slots = lab->requests;
	lab->ep.req.mask = LAB_REQUESTS - 1;
	lab->ep.recv.slots = lab->receives;
	lab->ep.recv.mask = LAB_RECEIVES - 1;
	lab->ep.known_source = CORE_KNOWN_NONE;
	lab->ep.known_target = CORE_KNOWN_NONE;
	lab->memory = make_memory();
	lab->peer_memory = make_memory();
	MUST(shm_ep_create(&lab->ep) == 0);
}

static void make_keys(struct lab *lab)
{
	const uint32_t all = SOFT_RIGHT_REMOTE_READ | SOFT_RIGHT_REMOTE_WRITE | SOFT_RIGHT_PULL;

	/* made once: fuzzers open thousands of benches in a second */
	if (!own_table)
		MUST(soft_keys_create(&own_table) == 0 && soft_keys_create(&peer_table) == 0);
	lab->adapter.keys = own_table;
	lab->peer_keys = peer_table;
	MUST(!soft_keys_add(lab->adapter.keys, (uintptr_t)lab->memory, LAB_MEMORY, all, lab->pz.id,
			    &lab->rkey));
	MUST(!soft_keys_add(lab->adapter.keys, (uintptr_t)lab->memory, LAB_MEMORY,
			    SOFT_RIGHT_REMOTE_READ, lab->pz.id, &lab->read_only));
	MUST(!soft_keys_add(lab->peer_keys, (uintptr_t)lab->peer_memory, LAB_MEMORY, all, 9,
			    &lab->peer_rkey));
	lab->lmr.rkey = lab->rkey;
}

static void drop_key(struct soft_keys *keys, uint32_t key)
{
	soft_keys_kill(keys, key);
	soft_keys_release(keys, key);
}

static void make_engine(struct lab *lab)
{
	struct shm_engine *engine = &lab->engine;

	engine->ia = &lab->ia;
	engine->adapter = &lab->adapter;
	engine->settings = lab->ia.settings;
	atomic_init(&engine->refs, 1000); /* never freed: it is part of the lab */
	atomic_init(&engine->deadline_ns, UINT64_MAX);
	core_lock_init(&engine->lock);
	engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	engine->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	MUST(engine->epoll_fd >= 0 && engine->kick_fd >= 0);
}

static void make_conn(struct lab *lab, bool has_cma)
{
	int fds[2], segment_fd;
	struct shm_conn *conn;

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	lab->peer_fd = fds[1];
	MUST(soft_fd_add(fds[0]) == 0);
	MUST(shm_conn_create(&lab->engine, fds[0], SHM_PASSIVE, &conn) == 0);
	MUST(shm_conn_make_segment(conn, &segment_fd) == 0);
	conn->segment_fd = segment_fd;
	MUST(shm_engine_add(&lab->engine, SHM_SLOT_CONN, conn, &conn->id) == 0);
	MUST(soft_view_get(soft_keys_fd(lab->peer_keys), &conn->remote.view) == 0);
	conn->remote.pz = 9;
	conn->remote.pid = getpid();
	conn->remote.is_same_user = true;
	conn->remote.has_cma = has_cma;
	conn->remote.has_pull = has_cma;
	conn->remote.is_pulling = has_cma;
	conn->read_limit = 2;
	lab->conn = conn;
	lab->peer = conn->theirs;
	lab->peer_requests = conn->segment->request[SHM_ACTIVE];
	lab->peer_responses = conn->segment->response[SHM_ACTIVE];
	shm_producer_init(&lab->peer_out, lab->peer_requests, SHM_REQUEST_RING,
			  &conn->mine->request_consumed);
	shm_producer_init(&lab->peer_answers, lab->peer_responses, SHM_RESPONSE_RING,
			  &conn->mine->response_consumed);
	shm_conn_attach(conn, &lab->ep);
	shm_conn_set_state(conn, SHM_ESTABLISHED);
}

struct lab *lab_open(enum core_copy_path copy, bool has_cma)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	MUST(lab && !the_lab);
	the_lab = lab;
	make_core(lab, copy);
	lab->adapter.ia = &lab->ia;
	make_keys(lab);
	make_engine(lab);
	make_conn(lab, has_cma);
	return lab;
}

void lab_take_bursts(struct lab *lab)
{
	static struct soft_bounce *bounce; /* made once, as the tables of keys are */

	if (!bounce)
		bounce = soft_bounce_create();
	MUST(bounce);
	lab->engine.bounce = bounce;
	lab->lmr.address = (uintptr_t)lab->memory;
	lab->lmr.length = LAB_MEMORY;
	atomic_store(&lab->lmr.key, LAB_LOCAL_KEY);
	lab->conn->is_placing = true;
}

static void make_evd(struct lab_evd *mine)
{
	core_lock_init(&mine->cell.lock);
	mine->evd.cell = &mine->cell;
	mine->evd.ring = mine->ring;
	mine->evd.capacity = LAB_EVENTS;
	mine->evd.mask = LAB_EVENTS - 1;
	mine->evd.has_waiter = true; /* wants to be told of notifications */
}

static void lab_know(struct lab *lab, struct core_known *known)
{
	*known = (struct core_known){.lmr = &lab->lmr,
				     .address = lab->lmr.address,
				     .length = lab->lmr.length,
				     .key = LAB_LOCAL_KEY};
}

void lab_be_usual(struct lab *lab)
{
	make_evd(&lab->recv_evd);
	make_evd(&lab->request_evd);
	lab->ep.recv_evd = &lab->recv_evd.evd;
	lab->ep.request_evd = &lab->request_evd.evd;
	lab->ep.attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	atomic_store(&lab->own.base, lab->memory);
	lab->is_usual = true;
	lab->lmr.pz = &lab->pz;
	lab->lmr.transport = &lab->own;
	lab->lmr.address = (uintptr_t)lab->memory;
	lab->lmr.length = LAB_MEMORY;
	atomic_store(&lab->lmr.key, LAB_LOCAL_KEY);
	lab_know(lab, &lab->ep.known_source);
	lab_know(lab, &lab->ep.known_target);
	lab->map = (struct shm_map){.key = lab->peer_rkey,
				    .state = SHM_MAP_READY,
				    .is_writable = true,
				    .address = (uintptr_t)lab->peer_memory,
				    .region = {.base = lab->peer_memory, .length = LAB_MEMORY}};
	lab->conn->remote.last_map = &lab->map;
	lab->conn->is_light = true;
}

bool lab_is_open(const struct lab *lab)
{
	return lab->end == 0 && shm_conn_state(lab->conn) == SHM_ESTABLISHED;
}

void lab_close(struct lab *lab)
{
	struct shm_conn *conn;

	if (lab->end == 0)
		shm_ep_detach(&lab->ep);
	shm_ep_destroy(&lab->ep);
	while ((conn = shm_engine_take_todo(&lab->engine)) != NULL)
		shm_conn_put(conn);
	MUST(atomic_load(&lab->engine.refs) == 1000);
	MUST(atomic_load(&lab->engine.active_count) == 0);
	MUST(atomic_load(&lab->engine.disarmed) == 0);
	MUST(atomic_load(&lab->lmr.pins) == 0 && core_pins_own.used == 0);
	close(lab->peer_fd);
	close(lab->engine.epoll_fd);
	close(lab->engine.kick_fd);
	free(lab->engine.slots);
	core_lock_destroy(&lab->engine.lock);
	drop_key(own_table, lab->rkey);
	drop_key(own_table, lab->read_only);
	drop_key(peer_table, lab->peer_rkey);
	drop_memory(lab->memory);
	drop_memory(lab->peer_memory);
	free(lab);
	the_lab = NULL;
}

/* What the ways of usual.c have told. */
static void take_events(struct lab *lab)
{
	struct core_evd *evd = &lab->recv_evd.evd;
	const DAT_DTO_COMPLETION_EVENT_DATA *data;

	for (; evd->head != evd->tail; evd->head++) {
		data = &evd->ring[evd->head & evd->mask].event.event_data.dto_completion_event_data;
		MUST(data->status == DAT_DTO_SUCCESS);
		MUST(data->transfered_length <= lab->receives[lab->received % LAB_RECEIVES].len);
		lab->received++;
		lab->receive_status = data->status;
		lab->receive_len = data->transfered_length;
		lab->receive_solicited = lab->recv_evd.was_notified;
		lab->recv_evd.was_notified = false;
	}
	evd = &lab->request_evd.evd;
	for (; evd->head != evd->tail; evd->head++) {
		data = &evd->ring[evd->head & evd->mask].event.event_data.dto_completion_event_data;
		MUST(data->status == DAT_DTO_SUCCESS);
		lab->done++;
		lab->done_status = data->status;
	}
}

void lab_pass(struct lab *lab)
{
	if (!lab_is_open(lab))
		return;
	shm_conn_get(lab->conn);
	{
		struct shm_conn *conn = lab->conn;

		if (shm_usual_pass(conn, &lab->ep) < 0)
			shm_conn_pass(conn, &lab->ep);
		shm_conn_put(conn);
	}
	take_events(lab);
}

bool lab_post_receive(struct lab *lab, uint32_t offset, uint32_t len)
{
	struct core_recv_queue *queue = &lab->ep.recv;
	uint32_t slot = queue->tail & queue->mask;

	if (queue->tail - queue->head == LAB_RECEIVES || !lab_is_open(lab))
		return false;
	offset %= LAB_MEMORY;
	if (len > LAB_MEMORY - offset)
		len = LAB_MEMORY - offset;
	lab->receive_iov[slot] = (DAT_LMR_TRIPLET){
		.lmr_context = LAB_LOCAL_KEY,
		.virtual_address = (uintptr_t)lab->memory + offset,
		.segment_length = len,
	};
	lab->receives[slot] = (struct core_wqe){
		.segments = len ? 1 : 0,
		.iov = &lab->receive_iov[slot],
		.len = len,
	};
	queue->tail++;
	shm_ep_post_recv(&lab->ep);
	take_events(lab);
	return true;
}

bool lab_post(struct lab *lab, enum core_op op, uint32_t offset, uint32_t len, uint32_t key,
	      uint64_t address)
{
	struct core_req_queue *queue = &lab->ep.req;
	struct core_req *req = core_req_at(queue, queue->tail);
	DAT_LMR_TRIPLET *iov = &lab->request_iov[queue->tail & queue->mask];

	if (queue->tail - queue->head == LAB_REQUESTS || !lab_is_open(lab))
		return false;
	offset %= LAB_MEMORY;
	if (len > LAB_MEMORY - offset)
		len = LAB_MEMORY - offset;
	*iov = (DAT_LMR_TRIPLET){
		.lmr_context = LAB_LOCAL_KEY,
		.virtual_address = (uintptr_t)lab->memory + offset,
		.segment_length = len,
	};
	*req = (struct core_req){
		.op = op,
		.flags = lab->next_flags,
		.segments = len ? 1 : 0,
		.iov = iov,
		.len = len,
		.remote = {.rmr_context = key, .target_address = address, .segment_length = len},
		.sequence = queue->tail,
	};
	lab->next_flags = DAT_COMPLETION_DEFAULT_FLAG;
	queue->tail++;
	shm_ep_post_request(&lab->ep, req);
	take_events(lab);
	return true;
}

bool lab_peer_entry(struct shm_producer *ring, struct shm_entry *entry, const void *payload)
{
	uint8_t *room;

	if (shm_producer_reserve(ring, entry->payload, &room) != 1)
		return false;
	if (payload)
		memcpy(room, payload, entry->payload);
	shm_producer_commit(ring, entry);
	return shm_producer_publish(ring);
}
