// SPDX-License-Identifier: BSD-2-Clause
/*
 * A test fixture, the lab: one end of a connection with the real engine code, but without the core
 * and the service thread, whose work the test asks for. The connection is set up as any other. The
 * test plays the peer: it has a socket and its own mapping of the segment, where it writes what it
 * likes, and reads what our side has written. The stand-ins for the core (lab_core.c) check what
 * any core would rely on: no completion without a post, none twice, no Receive longer than its
 * buffer. Nothing here sets or reads a member of a connection or of an engine.
 */
#ifndef TESTS_SOFT_SHM_LAB_H
#define TESTS_SOFT_SHM_LAB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/ability.h"
#include "core/event/evd_queue.h"
#include "core/mem/pz.h"
#include "soft/pins.h"
#include "soft/soft.h"
#include "soft/shm/conn.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/bytes/wire.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/map.h"

#define LAB_MEMORY (160u * 1024u) /* of more bytes than a pass moves */
#define LAB_GUARD 4096u		  /* on either side of the memory, must never change */
#define LAB_RECEIVES 8u
#define LAB_REQUESTS 8u
#define LAB_PRIVATE_MAX 64u
#define LAB_EVENTS 64u /* more than one pass completes */
/* Distinguishes events of Receives from those of requests. */
#define LAB_RECEIVE_COOKIE (1ull << 63)
#define LAB_LOCAL_KEY 0x77u /* lmr_context of our memory, in the first chunk of the table */

/* What a lab is opened with. */
struct lab_form {
	enum core_copy_path copy;  /* the setting of that name */
	bool has_cma;		   /* the kernel lets us copy from and to the peer's memory */
	uint32_t reads;		   /* RDMA Reads that the peer serves at the same time; 0: two */
	uint64_t peer_timeout_ms;  /* 0: 50 */
	uint64_t rnr_timeout_ms;   /* 0: no limit */
	uint64_t setup_timeout_ms; /* of the set-up alone */
};

struct lab {
	struct core_ia ia;
	struct core_mem mem;
	struct core_ep ep;
	struct core_handle cell;
	struct core_pz pz;
	struct core_lmr regions[CORE_MEM_CHUNK]; /* the first chunk of the memory table, with: */
	struct core_lmr *lmr;			 /* our memory, under LAB_LOCAL_KEY */
	struct soft_adapter adapter;
	struct shm_engine *engine;
	struct shm_listener *listener;
	struct shm_conn *conn; /* for the functions of the engine; a reference of its own */
	int peer_fd;
	int segment_fd;
	/* the peer's mapping, which lasts as long as the lab */
	struct shm_segment *segment;
	struct shm_side *peer;	      /* the peer's words in it, */
	const struct shm_side *own;   /* and those of our side */
	struct shm_producer peer_out; /* an honest producer on the peer's request ring */
	struct shm_producer peer_answers;
	struct shm_consumer peer_in; /* honest consumers on our rings */
	struct shm_consumer peer_answers_in;
	struct soft_keys *peer_keys;
	uint8_t *memory;      /* ours, LAB_MEMORY bytes between guards */
	uint8_t *peer_memory; /* likewise, of a file that can be mapped */
	uint32_t rkey;	      /* of our memory, all remote rights */
	uint32_t read_only;   /* of our memory, remote read only */
	uint32_t peer_rkey;   /* of the peer's memory, all rights */
	/* Receives */
	struct core_wqe receives[LAB_RECEIVES];
	uint32_t next_segments; /* of the next post, all the same one; 0 or 1: one */
	DAT_LMR_TRIPLET segments[LAB_RECEIVES][SOFT_IOV_MAX];
	/* requests */
	struct core_req requests[LAB_REQUESTS];
	DAT_COMPLETION_FLAGS next_flags; /* of the next post */
	bool is_freeing;		 /* the region is freed while the next request is posted */
	void (*entering)(struct lab *);	 /* called once, before the endpoint is locked next */
	/* the core's answer to a connection request; NULL: it refuses all */
	int (*requested)(struct lab *, const struct transport_request *);
	struct lab_evd {
		struct core_evd evd;
		struct core_handle cell;
		struct core_event ring[LAB_EVENTS];
		uint32_t notified; /* times that a waiter or a CNO would have been notified */
	} recv_evd, request_evd;
	uint32_t fast_posts; /* requests that the fast path has carried out */
	uint32_t fast_polls; /* polls that the fast path has carried out */
	uint32_t lookups;    /* segments that the slow path has looked up */
	uint64_t next_done;  /* sequence after that of the last request that was reported */
	/* what was reported */
	uint32_t received;
	DAT_DTO_COMPLETION_STATUS receive_status;
	DAT_VLEN receive_len;
	bool receive_solicited;
	uint32_t done;
	DAT_DTO_COMPLETION_STATUS done_status; /* of the last */
	DAT_VLEN done_len;
	DAT_EVENT_NUMBER end;
};

/* Not assert: these must hold in every build. */
#define LAB_MUST(condition)                                                                        \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* The lab that is open: the stand-ins of lab_core.c need it. */
extern struct lab *lab_current;

struct lab *lab_open(const struct lab_form *form);
/* The same with an engine alone, and so without what belongs to a connection. */
struct lab *lab_open_alone(const struct lab_form *form);
void lab_close(struct lab *lab); /* also checks the guards */
bool lab_is_open(const struct lab *lab);
/*
 * Gives the endpoint what its fast path needs: EVDs, which get all completions from now on, and a
 * known region. A thread polls.
 */
void lab_go_fast(struct lab *lab);
/* The peer gives its memory, and one request has used it: copies are announced without fences. */
void lab_map_peer(struct lab *lab);
/* Of peer_memory, with its guards. */
int lab_peer_file(void);
/* A poll as by a dequeue: on the fast path, and if that declines on the slow path. */
void lab_pass(struct lab *lab);
/* The fast path of it alone: a dequeue from that EVD takes at most `most` completions. */
bool lab_poll(struct lab *lab, struct core_evd *evd, unsigned most);
/* The same for an EVD that is locked. False: a pass is needed. */
bool lab_poll_as(struct lab *lab, struct core_dequeue *dequeue, unsigned most);
/* A dequeue from the EVD on the fast path, over all connections, as soft.c makes it. */
enum transport_poll lab_dequeue(struct lab *lab, struct lab_evd *evd, DAT_EVENT *event);
/* A pass of the service thread. */
void lab_library_pass(struct lab *lab);
/* The service thread reads the socket. */
void lab_serve_socket(struct lab *lab);
/* The service thread serves the connections that have asked for it, and those whose time has come. */
void lab_serve_pending(struct lab *lab);
/* Counts the events in the EVDs; checks the order of the completions. */
void lab_take_events(struct lab *lab);
/* The same for one event that a dequeue has returned. */
void lab_take_event(struct lab *lab, const DAT_EVENT *event);
/* Biases the lock to the calling thread, so that core_lock_try may succeed. */
void lab_own_lock(struct core_lock *lock);
/* Posts a Receive of len bytes at offset of our memory; false: no slot. */
bool lab_post_receive(struct lab *lab, uint32_t offset, uint32_t len);
/* Posts a request on len bytes at offset of our memory; RDMA at address of the peer. */
bool lab_post(struct lab *lab, enum core_op op, uint32_t offset, uint32_t len, uint32_t key,
	      uint64_t address);
/* A whole message of that length. */
static inline struct shm_entry lab_send_entry(uint32_t payload)
{
	return (struct shm_entry){
		.type = SHM_ENTRY_SEND,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.payload = (uint16_t)payload,
		.length = payload,
	};
}

/*
 * The peer's end with the real engine code, where the test does not play it: a second connection on
 * the same segment and socket, without an endpoint. It sees our key table. The caller drops the
 * reference.
 */
struct shm_conn *lab_make_far(struct lab *lab);
/* The peer sends a packet; the service thread has not read it yet. */
void lab_peer_send(struct lab *lab, union shm_wire *wire, const int *fds, unsigned count);
/* The type of the next packet to the peer, which must be valid and without a descriptor, or 0. */
enum shm_wire_type lab_peer_packet(struct lab *lab, union shm_wire *wire_out);
/* What the peer says about itself. */
void lab_fill_side(const struct lab_form *form, struct shm_wire_side *side);
/* The steps of the set-up at the peer, for lab_open and lab_close. */
void lab_peer_calls(struct lab *lab, DAT_CONN_QUAL qual, const struct lab_form *form);
void lab_peer_is_ready(struct lab *lab); /* after our answer */
void lab_peer_leaves(struct lab *lab);
/*
 * A thread of the peer polls in vain now, or has last done so at that time; 0: its last poll found
 * a completion.
 */
void lab_peer_polls(struct lab *lab);
void lab_peer_polled_at(struct lab *lab, uint64_t ns);

/* The peer publishes one entry (payload may be NULL: whatever is there); false: no room. */
bool lab_peer_entry(struct shm_producer *ring, struct shm_entry *entry, const void *payload);
/* The peer takes our next entry of that ring, if there is one, and gives its space back. */
bool lab_peer_takes(struct shm_consumer *ring, struct shm_entry *entry_out,
		    const uint8_t **payload_out);
/* The peer takes all our entries, which are so many. */
unsigned lab_peer_takes_all(struct lab *lab);
/* The peer says that so many messages and Writes of ours are done, and has taken all entries. */
void lab_peer_done(struct lab *lab, uint32_t done);

#endif
