// SPDX-License-Identifier: BSD-2-Clause
/*
 * One side of a connection in test_mix.c. side.c is compiled for DAT 1.2 and for DAT 2.0, each time
 * into a module that needs the library of that generation alone.
 */
#ifndef TESTS_DAT2_SIDE_H
#define TESTS_DAT2_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct side; /* an instance, an endpoint and a region of SIDE_SIZE bytes */

#define SIDE_SIZE 4096u

#define SIDE_PROVIDER_VALUES 16

enum side_queue {
	SIDE_CONN,    /* requests of connections, and what becomes of one */
	SIDE_REQUEST, /* completions */
	SIDE_RECV,
	SIDE_QUEUES,
};

enum side_object {
	SIDE_IA,
	SIDE_PZ,
	SIDE_EVD,
	SIDE_EP,
	SIDE_LMR,
	SIDE_RMR,
	SIDE_PSP,
	SIDE_OBJECTS
};

enum side_op {
	SIDE_SEND,
	SIDE_RECEIVE,
	SIDE_WRITE,
	SIDE_READ,
	/* DAT 2.0 alone */
	SIDE_WRITE_IMMEDIATE,
	SIDE_FETCH_ADD,
	SIDE_SEND_INVALIDATE, /* the key in `key` */
};

/* Local bytes at `at`, and the peer's memory, if the operation has one. */
struct side_post {
	enum side_op op;
	uint32_t at;
	uint32_t length;
	uint32_t key;
	uint64_t address;
	uint32_t local_key; /* 0: of the side's own region */
};

/* The members that the kind of event has; the others are 0. */
struct side_event {
	unsigned int number;
	int status;
	uint64_t length; /* transferred, or of private data */
	void *cr;
};

struct side_calls {
	struct side *(*open)(void);
	void (*close)(struct side *side);
	/* without immediate data, atomic operations and Sends with Invalidate */
	bool (*is_iwarp_device)(struct side *side);
	uint8_t *(*bytes)(struct side *side);
	uint32_t (*key)(struct side *side);    /* of the region, for the peer */
	uint32_t (*bind)(struct side *side);   /* a window over the region; its key */
	uint64_t (*listen)(struct side *side); /* the qualifier */
	bool (*is_in_use)(struct side *side, uint64_t qualifier); /* refused because of that */
	void (*connect)(struct side *side, uint64_t qualifier);
	void (*accept)(struct side *side, void *cr);
	void (*reject)(struct side *side, void *cr); /* with data, where the call takes some */
	void (*reset)(struct side *side);
	unsigned int (*post)(struct side *side, const struct side_post *post);
	struct side_event (*wait)(struct side *side, enum side_queue queue);
	uint32_t (*local_key)(struct side *side);
	void (*provider)(struct side *side, uint64_t values[SIDE_PROVIDER_VALUES]);
	/* one handle of each kind; a window and a service point exist after bind and listen */
	void (*handles)(struct side *side, void *handles[SIDE_OBJECTS]);
	/* Calls with handles of another side: the name of a call that took one for a handle, or NULL. */
	const char *(*takes)(struct side *side, void *const handles[SIDE_OBJECTS]);
};

#endif
