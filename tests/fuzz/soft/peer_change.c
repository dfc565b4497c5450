// SPDX-License-Identifier: BSD-2-Clause
/* What changes the way to the memory of the peer (peer_change.h). */
#include "peer_change.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "soft/key.h"
#include "soft/shm/bytes/wire.h"
#include "soft/shm/transfer/map.h"

#define USES 4u /* of a key before its memory is asked for */

int peer_file(size_t size, int seals)
{
	int fd = memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	LAB_MUST(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	LAB_MUST(!seals || fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

/* Who holds the guard of the peer's table: this thread, or the dead. */
static void set_guard(struct lab *lab, uint32_t word)
{
	struct soft_key_entry *first =
		(struct soft_key_entry *)(uintptr_t)soft_keys_entries(lab->peer_keys);

	__atomic_store_n(&first->guard, word, __ATOMIC_RELEASE);
}

void peer_change_end(struct lab *lab)
{
	set_guard(lab, (uint32_t)syscall(SYS_gettid));
}

/* Answers the question for memory, as after some uses of its key. */
static void map_answer(struct lab *lab, struct peer_input *in)
{
	uint8_t how = peer_byte(in);
	struct shm_wire_give give = {
		.key = lab->peer_rkey,
		.address = (uintptr_t)lab->peer_memory,
		.length = LAB_MEMORY,
	};
	static int sealed = -1, unsealed;

	if (sealed < 0) {
		sealed = peer_file(LAB_MEMORY, F_SEAL_SHRINK);
		unsealed = peer_file(LAB_MEMORY, 0);
	}
	if (how & 2)
		give.length = peer_length(in);
	if (how & 4)
		give.offset = peer_word(in);
	for (unsigned i = 0; i < USES; i++)
		lab_post(lab, CORE_OP_RDMA_READ, 0, 1, give.key, give.address);
	if (how >= 240)
		shm_map_refused(lab->conn, give.key);
	else if (how >= 224)
		shm_map_gone(lab->conn, give.key);
	else
		shm_map_given(lab->conn, &give, how >= 208 ? unsealed : sealed);
}

/* A thread of the peer polls, has polled, or claims any time. */
static void set_pulse(struct lab *lab, struct peer_input *in)
{
	uint8_t how = peer_byte(in);

	if (how & 1)
		lab_peer_polls(lab);
	else
		lab_peer_polled_at(lab, how & 2 ? (uint64_t)peer_word(in) << 32 : 0);
}

void peer_change(struct lab *lab, struct peer_input *in)
{
	switch (peer_byte(in) % 6) {
	case 0: /* the peer has died, and nothing else shows it yet */
		set_guard(lab, FUTEX_OWNER_DIED);
		break;
	case 1: /* our consumer frees its memory */
		atomic_store(&lab->lmr->key, 0);
		break;
	case 2: /* not noticed yet */
		shutdown(lab->peer_fd, SHUT_RDWR);
		break;
	case 3:
		shutdown(lab->peer_fd, SHUT_RDWR);
		lab_serve_socket(lab);
		break;
	case 4:
		set_pulse(lab, in);
		break;
	default:
		map_answer(lab, in);
	}
}
