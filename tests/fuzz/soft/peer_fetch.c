// SPDX-License-Identifier: BSD-2-Clause
/* Messages that the receiver fetches (peer_fetch.h). */
#include "peer_fetch.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/state.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/pool.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/wire.h"

#define READABLE (2u * SHM_BUDGET)
#define LARGE (READABLE + 65536u) /* the rest cannot be read */
#define USES 4u			  /* of a key before its memory is asked for */

/* The same in all labs, but for the key. */
static uint8_t *large;
static uint32_t large_key;

/* --- lists of sources --- */

void peer_fetch_open(struct lab *lab)
{
	if (!large) {
		large = mmap(NULL, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		LAB_MUST(large != MAP_FAILED && mprotect(large, READABLE, PROT_READ) == 0);
	}
	LAB_MUST(soft_keys_add(lab->peer_keys, (uintptr_t)large, LARGE, SOFT_RIGHT_PULL,
			       lab->conn->remote.pz, &large_key) == 0);
}

static void large_source(struct peer_input *in, struct shm_source *source)
{
	source->key = large_key;
	source->address = (uintptr_t)large + (peer_word(in) & 0xffffff);
	source->length = peer_word(in) & 0xffffff;
}

void peer_sources(struct lab *lab, struct peer_input *in, struct shm_entry *entry, uint8_t *payload)
{
	uint8_t how = peer_byte(in);
	uint64_t sum = 0;

	if (how & 7)
		entry->payload -= entry->payload % (uint16_t)sizeof(struct shm_source);
	for (uint32_t at = 0; at + sizeof(struct shm_source) <= entry->payload;
	     at += sizeof(struct shm_source)) {
		struct shm_source source = {.key = lab->peer_rkey};
		uint8_t kind = peer_byte(in);

		if (kind & 1) {
			large_source(in, &source);
		} else {
			source.address = peer_address(in, lab->peer_memory);
			source.length = peer_length(in);
		}
		if (kind >= 240)
			source.key = peer_word(in);
		memcpy(payload + at, &source, sizeof(source));
		sum += source.length;
	}
	if (how & 0x38)
		entry->length = sum;
}

/* --- what keeps us from fetching --- */

/* Who holds the guard of the peer's table: nobody, a thread with the peer's memory, the dead. */
static void set_guard(struct lab *lab, uint32_t word)
{
	struct soft_key_entry *first =
		(struct soft_key_entry *)(uintptr_t)soft_keys_entries(lab->peer_keys);

	__atomic_store_n(&first->guard, word, __ATOMIC_RELEASE);
}

void peer_fetch_close(struct lab *lab)
{
	set_guard(lab, 0);
	soft_keys_invalidate(lab->peer_keys, large_key);
	soft_keys_release(lab->peer_keys, large_key);
}

/* Answers the question for memory, as after some uses of its key. */
static void map_answer(struct lab *lab, struct peer_input *in)
{
	uint8_t how = peer_byte(in);
	bool is_large = how & 1;
	struct shm_wire_give give = {
		.key = is_large ? large_key : lab->peer_rkey,
		.address = (uintptr_t)(is_large ? large : lab->peer_memory),
		.length = is_large ? LARGE : LAB_MEMORY,
	};
	static int sealed = -1, unsealed;

	if (sealed < 0) {
		sealed = lab_pool_file(LARGE, F_SEAL_SHRINK);
		unsealed = lab_pool_file(LARGE, 0);
	}
	if (how & 2)
		give.length = peer_length(in);
	if (how & 4)
		give.offset = peer_word(in);
	for (unsigned i = 0; i < USES && lab->conn->remote.maps; i++)
		(void)shm_map_find(lab->conn, give.key);
	if (how >= 240)
		shm_map_refused(lab->conn, give.key);
	else if (how >= 224)
		shm_map_gone(lab->conn, give.key);
	else
		shm_map_given(lab->conn, &give, how >= 208 ? unsealed : sealed);
}

/* As when the service thread finds the end of the socket. */
static void die(struct lab *lab)
{
	struct shm_conn *conn = lab->conn;

	shm_conn_get(conn);
	conn->is_peer_gone = true;
	shm_conn_drain(conn, &lab->ep);
	if (shm_conn_state(conn) == SHM_ESTABLISHED)
		shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
	shm_conn_finish(conn, &lab->ep);
	shm_conn_put(conn);
	lab_take_events(lab);
}

void peer_change_fetch(struct lab *lab, struct peer_input *in)
{
	struct shm_remote *remote = &lab->conn->remote;

	switch (peer_byte(in) % 8) {
	case 0: /* the kernel finds no such process */
		remote->pid = 0;
		break;
	case 1:
		remote->pid = getpid();
		break;
	case 2: /* but a thread of it */
		remote->token_address = (uintptr_t)large;
		set_guard(lab, (uint32_t)gettid());
		break;
	case 3:
		set_guard(lab, FUTEX_OWNER_DIED);
		break;
	case 4: /* our consumer frees its memory */
		atomic_store(&lab->lmr->key, 0);
		break;
	case 5: /* not noticed yet */
		shutdown(lab->peer_fd, SHUT_RDWR);
		remote->alive_ns = 0;
		break;
	case 6:
		die(lab);
		break;
	default:
		map_answer(lab, in);
	}
}

/* --- bytes that are supplied --- */

/* The peer asks for the bytes of our Send, and has taken what we have put into the rings. */
static void ask_for_bytes(struct lab *lab, struct peer_input *in)
{
	uint8_t number = peer_byte(in);

	atomic_store(&lab->peer->response_consumed, lab->conn->response_out.published);
	atomic_store(&lab->peer->waits,
		     SHM_WAITS_FOR(shm_conn_acked(lab->conn) + (number < 240 ? 0 : number)));
}

/* The peer supplies what is left of its message, in one entry or several. */
static void give_bytes(struct lab *lab, struct peer_input *in, uint8_t how)
{
	static const uint8_t bytes[SHM_RESPONSE_PAYLOAD] = {'s'};
	const struct shm_arrival *arrival = &lab->conn->arrival;
	uint8_t wrong = peer_byte(in);
	uint64_t left = arrival->length - arrival->offset + (wrong == 1);
	uint32_t most = 1 + peer_word(in) % SHM_PIECE;
	bool is_piece = how & 1;
	unsigned i = 0;

	if (!is_piece && most > SHM_RESPONSE_PAYLOAD)
		most = SHM_RESPONSE_PAYLOAD;
	do {
		struct shm_piece piece = {i, left < most ? (uint32_t)left : most};
		struct shm_entry entry = {.type = SHM_ENTRY_BYTES};

		left -= piece.bytes;
		entry.payload = (uint16_t)(is_piece ? sizeof(piece) : piece.bytes);
		entry.flags = (is_piece ? SHM_FLAG_PIECE : 0) | (left ? 0 : SHM_FLAG_LAST);
		if (wrong == 2)
			entry.flags ^= SHM_FLAG_LAST;
		if (!lab_peer_entry(&lab->peer_answers, &entry, is_piece ? (void *)&piece : bytes))
			return;
	} while (left && i++ < how >> 4);
}

void peer_supply(struct lab *lab, struct peer_input *in)
{
	uint8_t how = peer_byte(in);

	if (how & 2)
		ask_for_bytes(lab, in);
	else
		give_bytes(lab, in, how);
}
