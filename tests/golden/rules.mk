# Stored inputs and expected outputs; see tests/golden/kit.h.
golden_src := $(sort $(wildcard tests/golden/*.c))

$(B)/tests/check_kit: $(call obj,$(golden_src) $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

.PHONY: check-kit
check-kit: $(B)/tests/check_kit ## the conformance kit: KIT=DIR [ONLY=models,tok,...] [MATCH=regex]
	$(RUN) $(B)/tests/check_kit $(KIT) '$(ONLY)' '$(MATCH)'
