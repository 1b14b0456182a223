{{- define "candor.image" -}}
{{ $.Values.image.repository }}:{{ $.Values.image.tag | default $.Chart.AppVersion }}
{{- end -}}
