// SPDX-License-Identifier: BSD-2-Clause
/*
 * The packets on the local socket of a connection: set-up, end, wake-up, and the exchange of memory
 * files for direct mapping. Each packet is one struct of fixed size; those with private data end
 * behind its last byte. The decoder trusts nothing.
 */
#ifndef SHM_WIRE_H
#define SHM_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_WIRE_MAGIC 0x4d48534fu /* "OSHM" */
#define SHM_WIRE_VERSION 13u
#define SHM_PRIVATE_MAX 512u
#define SHM_TOKEN_SIZE 16u
#define SHM_WIRE_FDS_MAX 2u

enum shm_wire_type {
	SHM_WIRE_REQUEST = 1, /* active side */
	SHM_WIRE_ACCEPT,      /* passive side; descriptors: segment; key table */
	SHM_WIRE_REJECT,      /* passive side */
	SHM_WIRE_READY,	      /* active side: established; descriptor: key table, likewise */
	SHM_WIRE_CLOSE,	      /* either side: the connection has ended */
	SHM_WIRE_WAKE,	      /* there are entries for a side that sleeps */
	SHM_WIRE_HURRY,	      /* RDMA is late: carry it out, although a thread has polled */
	SHM_WIRE_MAP_ASK,     /* may I map the memory behind this key? */
	SHM_WIRE_MAP_GIVE,    /* yes; descriptor: the memory file */
	SHM_WIRE_MAP_REFUSE,  /* no */
	SHM_WIRE_KEY_GONE,    /* a key whose memory you got is dead: unmap it */
	SHM_WIRE_TYPE_END,
};

enum shm_wire_why {
	SHM_WHY_PROVIDER = 1,	/* reject: without the consumer's decision */
	SHM_WHY_CONSUMER = 2,	/* reject: dat_cr_reject */
	SHM_WHY_DISCONNECT = 3, /* close: a disconnect was requested */
	SHM_WHY_ERROR = 4,	/* close: an error */
	SHM_WHY_STRANGER = 5,	/* reject: the request is of another user */
};

struct shm_wire_head {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
};

/* What each side says about itself. */
struct shm_wire_side {
	uint64_t port;		/* local port qualifier of the endpoint */
	uint64_t token_address; /* where the token is in the sender's memory; 0: not given */
	uint8_t token[SHM_TOKEN_SIZE];
	uint32_t read_in;
	uint32_t read_out;
	uint32_t pz;	/* struct core_pz.id of the endpoint: keys of that zone may be used */
	uint32_t takes; /* enum transport_takes */
};

struct shm_wire_request {
	struct shm_wire_head head;
	uint64_t qual;
	struct shm_wire_side side;
	uint16_t family; /* AF_INET, AF_INET6: of the requesting adapter */
	uint16_t pad;
	uint32_t scope;
	uint8_t address[16];
	uint32_t private_size;
	uint8_t private_data[SHM_PRIVATE_MAX];
};

struct shm_wire_accept {
	struct shm_wire_head head;
	struct shm_wire_side side;
	uint32_t private_size;
	uint8_t private_data[SHM_PRIVATE_MAX];
};

struct shm_wire_reject {
	struct shm_wire_head head;
	uint32_t why;
	uint32_t private_size;
	uint8_t private_data[SHM_PRIVATE_MAX];
};

struct shm_wire_word { /* CLOSE: why; READY, HURRY: 0; others: key */
	struct shm_wire_head head;
	uint32_t word;
	uint32_t pad;
};

struct shm_wire_give {
	struct shm_wire_head head;
	uint32_t key;
	uint32_t pad;
	uint64_t address; /* of the region in the owner's memory */
	uint64_t length;
	uint64_t offset; /* of the region in the file */
};

union shm_wire {
	struct shm_wire_head head;
	struct shm_wire_request request;
	struct shm_wire_accept accept;
	struct shm_wire_reject reject;
	struct shm_wire_word word;
	struct shm_wire_give give;
};

static_assert(sizeof(struct shm_wire_head) == 8, "layout");
static_assert(sizeof(struct shm_wire_side) == 48, "layout");
static_assert(offsetof(struct shm_wire_request, private_data) == 92, "layout");
static_assert(offsetof(struct shm_wire_accept, private_data) == 60, "layout");
static_assert(offsetof(struct shm_wire_reject, private_data) == 16, "layout");
static_assert(sizeof(struct shm_wire_word) == 16, "layout");
static_assert(sizeof(struct shm_wire_give) == 40, "layout");

/* Fills the head; the caller fills the rest of the packet. */
void shm_wire_prepare(union shm_wire *wire, enum shm_wire_type type);
/* The size of a filled packet. */
size_t shm_wire_size(const union shm_wire *wire);

/*
 * Decodes a packet: 0 and the copy, or -EPROTO for anything that is not exactly one valid packet
 * with the right number of descriptors.
 */
int shm_wire_decode(const void *bytes, size_t size, unsigned fd_count, union shm_wire *wire_out);

#endif
