// SPDX-License-Identifier: BSD-2-Clause
/* Encoding and checking of the packets of wire.h. One table describes each type. */
#include "soft/shm/bytes/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum wire_check {
	CHECK_NONE,
	CHECK_REQUEST,
	CHECK_ACCEPT,
	CHECK_REJECT,
	CHECK_CLOSE,
	CHECK_KEY,
	CHECK_GIVE,
};

static const struct {
	uint8_t fds_min;
	uint8_t fds_max;
	uint8_t check;
	uint16_t size; /* without private data */
} wire_types[SHM_WIRE_TYPE_END] = {
	[SHM_WIRE_REQUEST] = {0, 0, CHECK_REQUEST, offsetof(struct shm_wire_request, private_data)},
	[SHM_WIRE_ACCEPT] = {1, 2, CHECK_ACCEPT, offsetof(struct shm_wire_accept, private_data)},
	[SHM_WIRE_REJECT] = {0, 0, CHECK_REJECT, offsetof(struct shm_wire_reject, private_data)},
	[SHM_WIRE_READY] = {0, 1, CHECK_NONE, sizeof(struct shm_wire_word)},
	[SHM_WIRE_CLOSE] = {0, 0, CHECK_CLOSE, sizeof(struct shm_wire_word)},
	[SHM_WIRE_WAKE] = {0, 0, CHECK_NONE, sizeof(struct shm_wire_head)},
	[SHM_WIRE_HURRY] = {0, 0, CHECK_NONE, sizeof(struct shm_wire_word)},
	[SHM_WIRE_MAP_ASK] = {0, 0, CHECK_KEY, sizeof(struct shm_wire_word)},
	[SHM_WIRE_MAP_GIVE] = {1, 1, CHECK_GIVE, sizeof(struct shm_wire_give)},
	[SHM_WIRE_MAP_REFUSE] = {0, 0, CHECK_KEY, sizeof(struct shm_wire_word)},
	[SHM_WIRE_KEY_GONE] = {0, 0, CHECK_KEY, sizeof(struct shm_wire_word)},
};

void shm_wire_prepare(union shm_wire *wire, enum shm_wire_type type)
{
	memset(wire, 0, sizeof(*wire));
	wire->head.magic = SHM_WIRE_MAGIC;
	wire->head.version = SHM_WIRE_VERSION;
	wire->head.type = (uint16_t)type;
}

/* Bytes of private data that the packet claims to carry. */
static uint32_t private_size(const union shm_wire *wire)
{
	switch (wire_types[wire->head.type].check) {
	case CHECK_REQUEST:
		return wire->request.private_size;
	case CHECK_ACCEPT:
		return wire->accept.private_size;
	case CHECK_REJECT:
		return wire->reject.private_size;
	default:
		return 0;
	}
}

size_t shm_wire_size(const union shm_wire *wire)
{
	return wire_types[wire->head.type].size + private_size(wire);
}

static int check_fields(const union shm_wire *wire)
{
	uint32_t word = wire->word.word;

	switch (wire_types[wire->head.type].check) {
	case CHECK_REQUEST:
		if (wire->request.family != AF_INET && wire->request.family != AF_INET6)
			return -EPROTO;
		return wire->request.side.port ? 0 : -EPROTO;
	case CHECK_REJECT:
		if (wire->reject.private_size && word != SHM_WHY_CONSUMER)
			return -EPROTO;
		return word == SHM_WHY_PROVIDER || word == SHM_WHY_CONSUMER ||
				       word == SHM_WHY_STRANGER
			       ? 0
			       : -EPROTO;
	case CHECK_CLOSE:
		return word == SHM_WHY_DISCONNECT || word == SHM_WHY_ERROR ? 0 : -EPROTO;
	case CHECK_KEY:
		return word ? 0 : -EPROTO;
	case CHECK_GIVE:
		/* by subtraction: neither range may wrap */
		if (!wire->give.key || !wire->give.length ||
		    wire->give.length - 1 > UINT64_MAX - wire->give.address ||
		    wire->give.length > INT64_MAX ||
		    wire->give.offset > INT64_MAX - wire->give.length)
			return -EPROTO;
		return 0;
	default:
		return 0;
	}
}

int shm_wire_decode(const void *bytes, size_t size, unsigned fd_count, union shm_wire *wire_out)
{
	size_t fixed;

	if (size < sizeof(struct shm_wire_head) || size > sizeof(*wire_out))
		return -EPROTO;
	memset(wire_out, 0, sizeof(*wire_out));
	memcpy(wire_out, bytes, size);
	if (wire_out->head.magic != SHM_WIRE_MAGIC || wire_out->head.version != SHM_WIRE_VERSION ||
	    wire_out->head.type == 0 || wire_out->head.type >= SHM_WIRE_TYPE_END)
		return -EPROTO;
	fixed = wire_types[wire_out->head.type].size;
	if (size < fixed || fd_count < wire_types[wire_out->head.type].fds_min ||
	    fd_count > wire_types[wire_out->head.type].fds_max ||
	    private_size(wire_out) > SHM_PRIVATE_MAX || size != fixed + private_size(wire_out))
		return -EPROTO;
	return check_fields(wire_out);
}
