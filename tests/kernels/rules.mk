# Every kernel against its scalar twin, bit for bit (backends/cpu/README.md).
# Linked with kernels and formats alone: no outside library, so the static
# cross build needs nothing but a cross compiler.
kernel_test_src := $(sort $(wildcard tests/kernels/*.c)) backends/cpu/kernels.c backends/cpu/cpuid.c \
                   $(wildcard backends/cpu/math.c) $(format_src) $(kernel_src)

$(B)/tests/check_kernels: $(call obj,$(filter-out tests/kernels/check_ops.c,$(kernel_test_src)))
	@mkdir -p $(@D)
	@$(if $(Q),echo "  LINK  $@",:)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm

.PHONY: check-kernels check-cross
check-kernels: $(B)/tests/check_kernels ## every kernel against its twin [ARGS="--only q4_k --bench"]
	$(RUN) $(B)/tests/check_kernels $(ARGS)

check-cross: ## the NEON kernels, cross compiled and run by qemu
	$(MAKE) B=$(B)-arm CC=aarch64-linux-gnu-gcc LDFLAGS=-static RUN=qemu-aarch64-static check-kernels

# Every op on every tier, thread count and batch split (tests/kernels/ops/bed.h).
ops_test_src := tests/kernels/check_ops.c $(sort $(wildcard tests/kernels/ops/*.c))
-include $(patsubst %.c,$(B)/%.d,$(wildcard tests/kernels/ops/*.c))

$(B)/tests/check_ops: $(call obj,$(ops_test_src) $(backends_src) $(common_src))
	$(call link,$^)

.PHONY: check-ops
check-ops: $(B)/tests/check_ops ## every op against double precision and itself [ARGS="--only MATMUL"]
	$(RUN) $(B)/tests/check_ops $(ARGS)
