// SPDX-License-Identifier: BSD-2-Clause
/* The lab of lab.h: its construction, and the calls of our side. */
#include "lab.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/ep/ep_fast.h"
#include "core/base/slab.h"
#include "soft/copy.h"
#include "soft/key.h"
#include "soft/shm/state.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/connect/setup.h"
#include "soft/shm/engine/drive.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/fast.h"

#define GUARD_BYTE 0xa5

struct lab *lab_current;
static struct soft_keys *own_table, *peer_table;
static struct soft_guard peer_guard; /* of the peer's table, held by the test */

static int peer_file = -1;

/* Created once, like the key tables below. */
static uint8_t *make_memory(uint8_t **block, int file)
{
	const size_t size = LAB_MEMORY + 2 * LAB_GUARD;

	if (!*block)
		*block = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
	LAB_MUST(*block != MAP_FAILED);
	memset(*block, GUARD_BYTE, size);
	return *block + LAB_GUARD;
}

static void open_peer_file(void)
{
	if (peer_file >= 0)
		return;
	peer_file = memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	LAB_MUST(peer_file >= 0 && ftruncate(peer_file, LAB_MEMORY + 2 * LAB_GUARD) == 0);
	LAB_MUST(fcntl(peer_file, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
}

static void check_guards(const uint8_t *memory)
{
	uint32_t i;

	for (i = 0; i < LAB_GUARD; i++)
		LAB_MUST(memory[-1 - (int)i] == GUARD_BYTE && memory[LAB_MEMORY + i] == GUARD_BYTE);
}

static void make_memory_table(struct lab *lab)
{
	static uint8_t *own_block, *peer_block;

	open_peer_file();
	lab->memory = make_memory(&own_block, -1);
	lab->peer_memory = make_memory(&peer_block, peer_file);
	lab->lmr = &lab->regions[LAB_LOCAL_KEY];
	lab->lmr->address = (uintptr_t)lab->memory;
	lab->lmr->length = LAB_MEMORY;
	lab->lmr->pz = &lab->pz;
	lab->lmr->priv = DAT_MEM_PRIV_ALL_FLAG;
	atomic_store(&lab->lmr->key, LAB_LOCAL_KEY);
	atomic_store(&lab->mem.chunks[0], lab->regions);
	lab->ia.mem = &lab->mem;
}

/* Slots as the core leaves them: the fields that a post does not set have any value. */
static void make_queues(struct lab *lab)
{
	memset(lab->requests, 0xee, sizeof(lab->requests));
	for (uint32_t i = 0; i < LAB_REQUESTS; i++)
		lab->requests[i].is_done = false;
	lab->ep.req.done = 0;
	lab->ep.req.slots = lab->requests;
	lab->ep.req.mask = LAB_REQUESTS - 1;
	lab->ep.req.capacity = LAB_REQUESTS;
	lab->ep.recv.slots = lab->receives;
	lab->ep.recv.mask = LAB_RECEIVES - 1;
	lab->ep.recv.capacity = LAB_RECEIVES;
}

static void make_core(struct lab *lab, const struct lab_form *form)
{
	lab->ia.settings = (struct core_settings){
		.copy = form->copy,
		.peer_timeout_ms = form->peer_timeout_ms ? form->peer_timeout_ms : 50,
		.rnr_timeout_ms = form->rnr_timeout_ms,
		.setup_timeout_ms = form->setup_timeout_ms,
	};
	lab->ia.provider_attr.max_private_data_size = LAB_PRIVATE_MAX;
	lab->ia.address.in.sin_family = AF_INET;
	lab->ia.address.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	lab->pz.id = 7;
	atomic_store(&lab->cell.tag, CORE_TAG(DAT_HANDLE_TYPE_EP));
	/* there are no EVDs yet */
	core_handle_set_slow(&lab->cell, CORE_EP_SLOW_EVD | CORE_EP_SLOW_CONN);
	lab->cell.object = &lab->ep;
	core_lock_init(&lab->cell.lock);
	lab->ep.cell = &lab->cell;
	lab->ep.ia = &lab->ia;
	lab->ep.pz = &lab->pz;
	lab->ep.state = DAT_EP_STATE_CONNECTED;
	lab->ep.cached_source = CORE_MEM_CACHE_EMPTY;
	lab->ep.cached_target = CORE_MEM_CACHE_EMPTY;
	make_queues(lab);
	make_memory_table(lab);
	lab->ep.transport = calloc(1, sizeof(struct shm_ep));
	LAB_MUST(lab->ep.transport);
}

static void make_keys(struct lab *lab)
{
	const uint32_t all =
		SOFT_RIGHT_REMOTE_READ | SOFT_RIGHT_REMOTE_WRITE | SOFT_RIGHT_REMOTE_ATOMIC;

	/* created once: fuzzers open thousands of labs in a second */
	if (!own_table) {
		LAB_MUST(soft_keys_create(&own_table) == 0 && soft_keys_create(&peer_table) == 0);
		soft_guard_begin(&peer_guard, peer_table);
	}
	lab->adapter.keys = own_table;
	lab->peer_keys = peer_table;
	LAB_MUST(!soft_keys_add(lab->adapter.keys, (uintptr_t)lab->memory, LAB_MEMORY, all,
				lab->pz.id, &lab->rkey));
	LAB_MUST(!soft_keys_add(lab->adapter.keys, (uintptr_t)lab->memory, LAB_MEMORY,
				SOFT_RIGHT_REMOTE_READ, lab->pz.id, &lab->read_only));
	LAB_MUST(!soft_keys_add(lab->peer_keys, (uintptr_t)lab->peer_memory, LAB_MEMORY, all, 9,
				&lab->peer_rkey));
	lab->lmr->rkey = lab->rkey;
}

static void drop_key(struct soft_keys *keys, uint32_t key)
{
	soft_keys_invalidate(keys, key);
	soft_keys_release(keys, key);
}

struct lab *lab_open_alone(const struct lab_form *form)
{
	struct lab *lab = core_line_alloc(1, sizeof(*lab));

	LAB_MUST(lab && !lab_current);
	lab_current = lab;
	make_core(lab, form);
	lab->adapter.ia = &lab->ia;
	make_keys(lab);
	atomic_store(soft_keys_pulse(lab->adapter.keys), 0);
	lab_peer_polled_at(lab, 0);
	LAB_MUST(shm_engine_create(&lab->adapter, &lab->engine) == 0);
	lab->peer_fd = -1;
	lab->segment_fd = -1;
	return lab;
}

static bool is_any(const struct shm_conn *conn, uint64_t unused)
{
	(void)conn;
	(void)unused;
	return true;
}

static int take_request(struct lab *lab, const struct transport_request *request)
{
	LAB_MUST(request->transport == lab->conn);
	return 0;
}

struct lab *lab_open(const struct lab_form *form)
{
	const struct transport_conn_param param = {
		.read_in = 2,
		.read_out = LAB_REQUESTS,
		.takes = TRANSPORT_TAKES_IMMEDIATE | TRANSPORT_TAKES_ATOMICS,
	};
	struct lab *lab = lab_open_alone(form);
	DAT_CONN_QUAL qual = 0;

	LAB_MUST(!shm_listen(lab->engine, (struct core_ref){NULL, 0}, &qual, &lab->listener));
	lab_peer_calls(lab, qual, form);
	shm_listener_event(lab->listener);
	lab->conn = shm_engine_next_conn(lab->engine, NULL, is_any, 0);
	LAB_MUST(lab->conn);
	lab->requested = take_request;
	lab_serve_socket(lab);
	shm_service_pending(lab->engine);
	LAB_MUST(shm_accept(lab->conn, &lab->ep, &param) == 0);
	lab_peer_is_ready(lab);
	lab_serve_socket(lab);
	LAB_MUST(lab_is_open(lab));
	return lab;
}

void lab_own_lock(struct core_lock *lock)
{
	/* more often than needed; where locks cannot be biased, core_lock_try succeeds anyway */
	for (unsigned i = 0; i < 100; i++) {
		core_lock_acquire(lock);
		core_lock_release(lock);
	}
}

static void make_evd(struct lab_evd *mine)
{
	core_lock_init(&mine->cell.lock);
	lab_own_lock(&mine->cell.lock);
	atomic_store(&mine->cell.tag, CORE_TAG(DAT_HANDLE_TYPE_EVD));
	mine->cell.object = &mine->evd;
	mine->evd.cell = &mine->cell;
	mine->evd.ring = mine->ring;
	mine->evd.capacity = LAB_EVENTS;
	mine->evd.mask = LAB_EVENTS - 1;
}

void lab_go_fast(struct lab *lab)
{
	lab_own_lock(&lab->cell.lock);
	make_evd(&lab->recv_evd);
	make_evd(&lab->request_evd);
	lab->ep.recv_evd = &lab->recv_evd.evd;
	lab->ep.request_evd = &lab->request_evd.evd;
	core_handle_clear_slow(&lab->cell, CORE_EP_SLOW_EVD);
	for (unsigned i = 0; i < CORE_FENCE_AFTER_PINS; i++) {
		core_pin(&lab->lmr->pinned);
		core_unpin(&lab->lmr->pinned);
	}
	core_mem_cache_fill(&lab->mem, LAB_LOCAL_KEY, &lab->ep.cached_source);
	core_mem_cache_fill(&lab->mem, LAB_LOCAL_KEY, &lab->ep.cached_target);
	shm_conn_disarm(lab->conn);
}

int lab_peer_file(void)
{
	return peer_file;
}

void lab_map_peer(struct lab *lab)
{
	const struct shm_wire_give give = {.key = lab->peer_rkey,
					   .address = (uintptr_t)lab->peer_memory,
					   .length = LAB_MEMORY,
					   .offset = LAB_GUARD};
	union shm_wire wire;

	while (lab_peer_packet(lab, &wire) != SHM_WIRE_MAP_ASK) {
		LAB_MUST(!shm_map_find(lab->conn, give.key));
		shm_map_count_use(lab->conn, give.key);
	}
	shm_map_given(lab->conn, &give, peer_file);
	/* too long for the fast path */
	LAB_MUST(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 1000, give.key, give.address));
	LAB_MUST(lab->done == 1 &&
		 atomic_load(&lab->own->is_unfenced) == core_fence_is_supported(CORE_FENCE_HOST));
	memset(lab->peer_memory, GUARD_BYTE, 1000);
	lab->done = 0;
	lab->lookups = 0;
}

bool lab_is_open(const struct lab *lab)
{
	return lab->end == 0 && shm_conn_state(lab->conn) == SHM_ESTABLISHED;
}

static void put_asking(struct soft_attended *attended, void *unused)
{
	(void)unused;
	if (attended->is_listener)
		shm_listener_put(shm_listener_of(attended));
	else
		shm_conn_put(shm_conn_of_attended(attended));
}

/* The thread of the engine, which does not run, holds a reference; so does each connection. */
static void close_engine(struct lab *lab)
{
	const int fd = lab->engine->service.epoll_fd;

	LAB_MUST(shm_active_count(lab->engine) == 0);
	if (lab->listener)
		shm_unlisten(lab->engine, lab->listener);
	soft_attention_serve_asking(&lab->engine->attention, put_asking, NULL);
	shm_engine_put(lab->engine);
	shm_engine_put(lab->engine);
	LAB_MUST(fcntl(fd, F_GETFD) < 0);
}

static void close_locks(struct lab *lab)
{
	core_lock_destroy(&lab->cell.lock);
	if (lab->recv_evd.evd.cell) {
		core_lock_destroy(&lab->recv_evd.cell.lock);
		core_lock_destroy(&lab->request_evd.cell.lock);
	}
}

void lab_close(struct lab *lab)
{
	if (lab->end == 0)
		shm_ep_detach(&lab->ep);
	shm_ep_destroy(&lab->ep);
	free(lab->ep.transport);
	if (lab->conn)
		shm_conn_put(lab->conn);
	LAB_MUST(atomic_load(&lab->lmr->pinned.others) == 0 && core_pins_own.used == 0);
	close_engine(lab);
	close_locks(lab);
	lab_peer_leaves(lab);
	drop_key(own_table, lab->rkey);
	drop_key(own_table, lab->read_only);
	drop_key(peer_table, lab->peer_rkey);
	check_guards(lab->memory);
	check_guards(lab->peer_memory);
	core_line_free(lab);
	lab_current = NULL;
}

void lab_take_event(struct lab *lab, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;
	uint64_t number = data->user_cookie.as_64 & ~LAB_RECEIVE_COOKIE;

	LAB_MUST(event->event_number == DAT_DTO_COMPLETION_EVENT && data->ep_handle == &lab->cell);
	if (data->user_cookie.as_64 & LAB_RECEIVE_COOKIE) {
		LAB_MUST(event->evd_handle == lab->ep.recv_evd->cell);
		LAB_MUST(number == lab->received);
		LAB_MUST(data->status != DAT_DTO_SUCCESS ||
			 data->transfered_length <= lab->receives[number % LAB_RECEIVES].len);
		lab->received++;
		lab->receive_status = data->status;
		lab->receive_len = data->transfered_length;
	} else {
		LAB_MUST(event->evd_handle == lab->ep.request_evd->cell);
		LAB_MUST(number >= lab->next_done && number < lab->ep.req.head);
		lab->next_done = number + 1;
		lab->done++;
		lab->done_status = data->status;
		lab->done_len = data->transfered_length;
	}
}

static void take_queue(struct lab *lab, struct core_evd *evd)
{
	for (; evd && evd->head != evd->tail; evd->head++)
		lab_take_event(lab, &evd->ring[evd->head & evd->mask].event);
}

void lab_take_events(struct lab *lab)
{
	take_queue(lab, lab->ep.recv_evd);
	take_queue(lab, lab->ep.request_evd);
}

bool lab_poll_as(struct lab *lab, struct core_dequeue *dequeue, unsigned most)
{
	enum shm_poll found;

	/* a connection without idle polls is a stream */
	shm_conn_set_idle(lab->conn, most == 1);
	found = shm_poll_fast(lab->conn, &lab->ep, dequeue);
	return found == SHM_POLL_DONE;
}

bool lab_poll(struct lab *lab, struct core_evd *evd, unsigned most)
{
	DAT_EVENT event;
	struct core_dequeue dequeue = {.cell = evd ? evd->cell : NULL, .event = &event};
	bool is_done;

	if (lab->cell.slow_reasons || !core_handle_enter_fast(evd->cell, DAT_HANDLE_TYPE_EVD))
		return false;
	is_done = lab_poll_as(lab, &dequeue, most);
	core_lock_leave(&evd->cell->lock);
	if (is_done)
		lab->fast_polls++;
	if (dequeue.is_filled)
		lab_take_event(lab, &event);
	return is_done || dequeue.is_filled;
}

enum transport_poll lab_dequeue(struct lab *lab, struct lab_evd *evd, DAT_EVENT *event)
{
	enum transport_poll found;

	if (!core_handle_enter_fast(&evd->cell, DAT_HANDLE_TYPE_EVD))
		abort();
	found = shm_poll(lab->engine, &evd->cell, event);
	core_lock_leave(&evd->cell.lock);
	return found;
}

static void pass(struct lab *lab, bool is_fast)
{
	if (!lab_is_open(lab))
		return;
	if (!is_fast || !lab_poll(lab, lab->ep.recv_evd, 1))
		shm_drive(lab->conn, &lab->ep);
	lab_take_events(lab);
}

void lab_pass(struct lab *lab)
{
	pass(lab, true);
}

void lab_library_pass(struct lab *lab)
{
	soft_is_library_thread = true;
	pass(lab, false);
	soft_is_library_thread = false;
}

void lab_serve_socket(struct lab *lab)
{
	soft_is_library_thread = true;
	shm_service_conn(lab->conn);
	soft_is_library_thread = false;
	lab_take_events(lab);
}

void lab_serve_pending(struct lab *lab)
{
	soft_is_library_thread = true;
	shm_service_pending(lab->engine);
	shm_service_deadlines(lab->engine);
	soft_is_library_thread = false;
	lab_take_events(lab);
}

/* A segment of len bytes at offset of our memory, cut at its end. */
static DAT_LMR_TRIPLET segment_of(const struct lab *lab, uint32_t offset, uint32_t len)
{
	offset %= LAB_MEMORY;
	return (DAT_LMR_TRIPLET){
		.lmr_context = LAB_LOCAL_KEY,
		.virtual_address = (uintptr_t)lab->memory + offset,
		.segment_length = len < LAB_MEMORY - offset ? len : LAB_MEMORY - offset,
	};
}

/* May the fast path be entered with that segment? */
static bool is_known(const struct lab *lab, const struct core_mem_cache *known,
		     const DAT_LMR_TRIPLET *segment)
{
	return !lab->cell.slow_reasons && core_mem_cache_hit(known, segment);
}

/* Posts a request on the fast path, where that may be entered. */
static bool post_fast(struct lab *lab, const struct core_fast_post *post)
{
	const struct core_mem_cache *known =
		post->op == CORE_OP_RDMA_READ ? &lab->ep.cached_target : &lab->ep.cached_source;

	if (post->op == CORE_OP_BIND || !is_known(lab, known, &post->segment))
		return false;
	if (lab->is_freeing)
		atomic_store(&lab->lmr->key, 0);
	return shm_post_fast(&lab->ep, post);
}

static void post_slow(struct lab *lab, const struct core_fast_post *post)
{
	struct core_req *req = post->req;

	if (!req->len)
		req->segments = 0;
	if (post->op != CORE_OP_SEND)
		req->remote.segment_length = req->len;
	core_req_clear_transport(req);
	shm_ep_post_request(&lab->ep, req);
}

static void repeat_segment(struct lab *lab, struct core_wqe *wqe)
{
	DAT_LMR_TRIPLET *segments = lab->segments[wqe - lab->receives];

	if (wqe->segments && lab->next_segments > 1) {
		wqe->segments = lab->next_segments;
		wqe->len *= wqe->segments;
		wqe->iov = segments;
		for (uint32_t i = 0; i < wqe->segments; i++)
			segments[i] = wqe->first;
	}
	lab->next_segments = 1;
}

bool lab_post_receive(struct lab *lab, uint32_t offset, uint32_t len)
{
	DAT_LMR_TRIPLET segment = segment_of(lab, offset, len);
	struct core_recv_queue *queue = &lab->ep.recv;
	struct core_wqe *wqe = &queue->slots[queue->tail & queue->mask];

	if (queue->tail - queue->head == queue->capacity || !lab_is_open(lab))
		return false;
	wqe->segments = segment.segment_length ? 1 : 0;
	wqe->len = segment.segment_length;
	wqe->flags = DAT_COMPLETION_DEFAULT_FLAG;
	wqe->cookie.as_64 = LAB_RECEIVE_COOKIE | queue->tail;
	wqe->iov = &wqe->first;
	wqe->first = segment;
	repeat_segment(lab, wqe);
	queue->tail++;
	if (wqe->segments > 1 || !is_known(lab, &lab->ep.cached_target, &segment))
		shm_ep_post_recv(&lab->ep);
	lab_take_events(lab);
	return true;
}

bool lab_post(struct lab *lab, enum core_op op, uint32_t offset, uint32_t len, uint32_t key,
	      uint64_t address)
{
	struct core_req_queue *queue = &lab->ep.req;
	struct core_fast_post post = {
		.number = queue->tail,
		.segment = segment_of(lab, offset, len),
		.op = op,
		.flags = lab->next_flags,
		.cookie = queue->tail,
		.remote = {.rmr_context = key, .target_address = address},
	};

	if (queue->tail - queue->head == queue->capacity || !lab_is_open(lab))
		return false;
	lab->next_flags = DAT_COMPLETION_DEFAULT_FLAG;
	post.req = core_req_put(&lab->ep, &post);
	if (post_fast(lab, &post))
		lab->fast_posts++;
	else
		post_slow(lab, &post);
	lab_take_events(lab);
	return true;
}
