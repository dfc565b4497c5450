// SPDX-License-Identifier: BSD-2-Clause
/*
 * All tunables of the providers: one table (settings.c) with name, default, unit, range and help,
 * and one parser. `key=value` in the instance data of the adapter's dat.conf line overrides the
 * default. The environment variable DAT_<KEY>, in capitals, overrides both.
 */
#ifndef CORE_SETTINGS_H
#define CORE_SETTINGS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an RDMA operation on the same host moves its bytes. */
enum core_copy_path {
	CORE_COPY_AUTO, /* the first of the three below that works */
	CORE_COPY_MAP,	/* memory of the peer mapped here; cma for memory that cannot be mapped */
	CORE_COPY_CMA,	/* process_vm_readv and process_vm_writev */
	CORE_COPY_RING, /* through the connection's ring; the target's engine copies them */
};

/* Whom a service point and an endpoint accept as a peer. */
enum core_peers {
	CORE_PEERS_ANY,
	CORE_PEERS_USER, /* only processes that have proven to be of our user */
};

/* How an RMR is bound on RDMA devices. */
enum core_rmr_bind {
	CORE_RMR_AUTO, /* a memory window if the device supports a suitable type and enforces it */
	CORE_RMR_WINDOW,       /* a memory window if the device supports a suitable type */
	CORE_RMR_REGISTRATION, /* a memory registration of the range */
};

/* Between which peers the software provider uses shared memory. */
enum core_transport {
	CORE_TRANSPORT_AUTO, /* shared memory on this host, TCP to others; see soft_ia_open */
	CORE_TRANSPORT_SHM,  /* shared memory only; peers elsewhere are unreachable */
	CORE_TRANSPORT_TCP,  /* TCP only */
};

/* Does a connection over TCP use the CRC of MPA? It does if either side wants it. */
enum core_crc {
	CORE_CRC_AUTO, /* between hosts */
	CORE_CRC_ON,
	CORE_CRC_OFF,
};

/* Does a request over TCP carry our header in front of the consumer's private data? */
enum core_header {
	CORE_HEADER_ON,
	CORE_HEADER_OFF, /* for listeners of others, which read their private data */
};

/* How the peer of a connection over TCP proves that an RDMA Write is placed. */
enum core_write_proof {
	CORE_PROOF_ON,	 /* OpenDAT: an answer of its engine; others: an RDMA Read of length 0 */
	CORE_PROOF_BYTE, /* others: an RDMA Read of the first byte of the newest Write */
	CORE_PROOF_OFF,	 /* not at all: a Write completes as a Send does */
};

/* Must posts and dequeues be safe against pthread_cancel? */
enum core_cancellation {
	CORE_CANCELLATION_AUTO,	 /* yes: cancellation is disabled around possible system calls */
	CORE_CANCELLATION_NEVER, /* no: the program cancels no thread in these calls */
};

#define CORE_SOCKET_DIR_MAX 256 /* including the terminating null */

struct core_settings {
	uint64_t transport;	   /* enum core_transport */
	uint64_t copy;		   /* enum core_copy_path */
	uint64_t peers;		   /* enum core_peers */
	uint64_t peer_timeout_ms;  /* longest wait for a peer that is stopped during a copy */
	uint64_t setup_timeout_ms; /* limit of a connection set-up if the peer does not answer */
	uint64_t rnr_timeout_ms;   /* longest time a message waits for a Receive; 0: no limit */
	uint64_t link_timeout_ms;  /* how long a connection over TCP waits for a silent peer */
	uint64_t crc;		   /* enum core_crc */
	uint64_t header;	   /* enum core_header */
	uint64_t write_proof;	   /* enum core_write_proof */
	uint64_t rmr_bind;	   /* enum core_rmr_bind */
	uint64_t cancellation;	   /* enum core_cancellation */
	uint64_t spin_us;	   /* time that a waiting call polls before it sleeps */
	char socket_dir[CORE_SOCKET_DIR_MAX]; /* where containers of one host meet; "": nowhere */
	cpu_set_t service_cpus; /* processors of the service threads; none: those of the opener */
};

#define CORE_DEVICE_MAX 64

/*
 * Splits instance data ("eth0", "eth0 0", "127.0.0.1 copy=cma") into the device (a network
 * interface or an address) and settings, applies the environment, and checks every value.
 * Returns 0, or -EINVAL with a message for the user in `message_out` (may be NULL).
 */
int core_settings_parse(const char *instance_data, char device_out[CORE_DEVICE_MAX],
			struct core_settings *settings_out, const char **message_out);

/*
 * The port number in instance data that core_settings_parse has accepted ("mlx5_0 1": 1); 0: none.
 */
uint32_t core_settings_port(const char *instance_data);

/* Calls `report` for each environment variable whose name begins with DAT_ and is unknown. */
void core_settings_unknown(void (*report)(const char *name, int len));

/* A setting as it is in force. */
struct core_setting_shown {
	const char *key;
	const char *unit; /* of a number; NULL: none */
	char value[CORE_SOCKET_DIR_MAX];
	const char *variable;	  /* of the environment, if it comes from there; else NULL */
	bool is_in_instance_data; /* neither: it is the default */
};

/* Reports each setting of an adapter with that instance data, which core_settings_parse accepts. */
void core_settings_list(const char *instance_data,
			void (*report)(void *context, const struct core_setting_shown *setting),
			void *context);

/* Writes the table of all settings as text, for dat_info and for the check of the manual page.
 * Returns the full length, as snprintf does. */
size_t core_settings_describe(char *text, size_t size);

#endif
